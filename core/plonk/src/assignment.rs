//! What all forks' `Assignment` does alike, as methods for an `impl`: the trait and its types are each fork's
//! own, so these are macros, and name the types that their caller has in scope.

/// Names of regions and namespaces, and with `columns` those of columns: nothing of them is kept.
#[doc(hidden)]
#[macro_export]
macro_rules! nameless {
    () => {
        fn enter_region<NR, N>(&mut self, _: N)
        where
            NR: Into<String>,
            N: FnOnce() -> NR,
        {
        }

        fn exit_region(&mut self) {}

        fn push_namespace<NR, N>(&mut self, _: N)
        where
            NR: Into<String>,
            N: FnOnce() -> NR,
        {
        }

        fn pop_namespace(&mut self, _: Option<String>) {}
    };
    (columns) => {
        $crate::nameless!();

        fn annotate_column<A, AR>(&mut self, _: A, _: Column<Any>)
        where
            A: FnOnce() -> AR,
            AR: Into<String>,
        {
        }
    };
}

/// A proof takes no selectors, and reads cells of `self.instances` in the first `self.usable_rows` of `2^self.k`
/// rows.
#[doc(hidden)]
#[macro_export]
macro_rules! proves {
    () => {
        fn enable_selector<A, AR>(&mut self, _: A, _: &Selector, _: usize) -> Result<(), Error>
        where
            A: FnOnce() -> AR,
            AR: Into<String>,
        {
            Ok(())
        }

        fn query_instance(&self, column: Column<Instance>, row: usize) -> Result<Value<F>, Error> {
            if row >= self.usable_rows {
                return Err(Error::not_enough_rows_available(self.k));
            }
            let value = self
                .instances
                .get(column.index())
                .and_then(|values| values.get(row));
            value
                .map(|value| Value::known(*value))
                .ok_or(Error::BoundsFailure)
        }
    };
    // Nor fixed cells, copies and fillings, of a fork in which these are asked for as functions, and may fail.
    ($Assigned:ident) => {
        $crate::proves!();

        fn assign_fixed<V, VR, A, AR>(&mut self, _: A, _: Column<Fixed>, _: usize, _: V) -> Result<(), Error>
        where
            V: FnOnce() -> Value<VR>,
            VR: Into<$Assigned<F>>,
            A: FnOnce() -> AR,
            AR: Into<String>,
        {
            Ok(())
        }

        fn copy(&mut self, _: Column<Any>, _: usize, _: Column<Any>, _: usize) -> Result<(), Error> {
            Ok(())
        }

        fn fill_from_row(&mut self, _: Column<Fixed>, _: usize, _: Value<$Assigned<F>>) -> Result<(), Error> {
            Ok(())
        }
    };
}
