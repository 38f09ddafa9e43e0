//! A child of the library's example.

use super::{
    read_credential, FromBase64 as _, FullCredential, K256Scalar, PublicKey, HOLDER_SK_BYTES, PUB_KEY,
};
use crate::{Sample, Sampled};

/// The credential that the library has for the example.
const CREDENTIAL: &str = concat!(
    env!("ZK_STDLIB"),
    "/examples/identity/jwt/credentials/2k-credential"
);

impl Sample for FullCredential {
    fn sample() -> Sampled<Self> {
        let blob = read_credential::<4096>(CREDENTIAL).expect("the library's credential");
        let (payload, signature) = Self::witness_from_blob(&blob);
        let holder: Option<_> = {
            use midnight_circuits::CircuitField as _;
            K256Scalar::from_bytes_be(&HOLDER_SK_BYTES).into()
        };
        Sampled {
            instance: PublicKey::from_base64(PUB_KEY).expect("the library's public key"),
            witness: (payload, signature, holder.expect("the library's secret key")),
        }
    }
}
