//! What every device must do, tried on each back end that runs here: the CPU's kernels, the CUDA
//! kernels compiled as host C++, in both orders of a block's threads, and a card if there is one.

mod costs;
mod devices;
mod products;
mod queue;
mod transforms;
