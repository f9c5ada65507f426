//! Conformance tests of devices, run on each back end available: the CPU's kernels, the CUDA
//! kernels compiled as host C++, in both orders of a block's threads, and a card if there is one.

mod costs;
mod devices;
mod products;
mod queue;
mod transforms;
