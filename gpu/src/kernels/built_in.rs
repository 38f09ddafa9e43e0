//! The crate's own kernels. Their text, `gpu/kernels`, is part of the program.

#[path = "../../kernels/sources.rs"]
mod sources;

use super::{Cache, Kernels, Nvrtc, Text, image, named_image};
use crate::device::Gpu;
use crate::error::Result;

impl Text {
    /// The text of the crate's own kernels without the Pasta curves, which take two thirds of the compiler's
    /// time and serve no job.
    pub fn built_in() -> Self {
        let (name, main) = sources::MAIN;
        let headers = sources::HEADERS.iter();
        Self {
            name: name.into(),
            main: main.into(),
            headers: headers
                .map(|(name, content)| ((*name).into(), (*content).into()))
                .collect(),
            options: vec!["-DSPK_WITHOUT_PASTA".into()],
        }
    }
}

impl Kernels {
    /// The crate's own kernels on a device: from the image that [`IMAGE_VARIABLE`](super::IMAGE_VARIABLE)
    /// names, or the cache, or NVRTC.
    ///
    /// # Errors
    /// Those of [`image`] and [`Kernels::load`]; [`Error::NoCompiler`](crate::Error::NoCompiler) without an
    /// image and without NVRTC.
    pub fn built_in(gpu: &Gpu, cache: Option<&Cache>) -> Result<Self> {
        let image = match named_image()? {
            Some(image) => image,
            None => image(gpu, &Text::built_in(), &Nvrtc::find()?, cache)?,
        };
        Self::load(gpu, &image)
    }
}
