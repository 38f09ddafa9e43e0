//! Links for Node: the library stays loaded when a worker ends that has loaded it, since its threads may still run.

fn main() {
    napi_build::setup();
}
