//! The library that is shipped: `libalpheus`, shared and static. Its functions are those of `alpheus_c::abi`.

pub use alpheus_c::abi;
