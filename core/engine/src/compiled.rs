//! What makes a package compile its generic code, once for each type that it is for.
//!
//! A generic function is compiled in each crate that calls it for types which that crate knows. The functions
//! of a trait that [`compiled!`] makes are generic over nothing: they are compiled where the trait is, and a
//! crate that calls them compiles a call.
//!
//! [`compiled!`]: crate::compiled!

/// A trait whose functions are each the instance of a generic function, for each type that is listed.
#[doc(hidden)]
#[macro_export]
macro_rules! compiled {
    (
        $(#[$doc:meta])*
        pub trait $name:ident: $bound:path;
        for { $($(#[$when:meta])* $for:ty;)+ }
        $functions:tt
    ) => {
        $crate::compiled!(@trait [$(#[$doc])*] $name [$bound] $functions);
        $($crate::compiled!(@impl [$(#[$when])*] $name [$for] $functions);)+
    };
    (@trait [$(#[$doc:meta])*] $name:ident [$bound:path] {
        $($(#[$about:meta])* fn $function:ident $(<$life:lifetime>)? ($($argument:ident: $type:ty),* $(,)?) -> $output:ty = $generic:expr;)+
    }) => {
        $(#[$doc])*
        pub trait $name: $bound {
            $($(#[$about])* fn $function $(<$life>)? ($($argument: $type),*) -> $output;)+
        }
    };
    (@impl [$(#[$when:meta])*] $name:ident [$for:ty] {
        $($(#[$about:meta])* fn $function:ident $(<$life:lifetime>)? ($($argument:ident: $type:ty),* $(,)?) -> $output:ty = $generic:expr;)+
    }) => {
        $(#[$when])*
        impl $name for $for {
            $($(#[$about])* #[inline(never)] fn $function $(<$life>)? ($($argument: $type),*) -> $output { $generic($($argument),*) })+
        }
    };
}
