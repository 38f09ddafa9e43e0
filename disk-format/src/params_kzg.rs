//! Files of halo2's `ParamsKZG`.
