// One source, two compilers: nvcc or NVRTC for a card, any C++17 compiler for a host.
//
// A kernel is a struct:
//
//   struct Kernel {
//     static constexpr u32 THREADS = …;         // of a block, at most
//     struct Args { … };                        // plain data; Rust has the same struct
//     struct Shared { … };                      // of a block
//     struct Own { … };                         // of a thread; it outlives a phase
//     static u32 phases(const Args&);           // how many, between barriers
//     static void phase(const Args&, Shared&, Own&, Thread, u32 number);
//   };
//
// and KERNEL(name, Kernel) gives it a name to launch it by. On a card a barrier stands between two
// phases. On a host a block's threads run a phase one after another, then the next: whatever depends
// on the order of threads within a phase is a race, and wrong.
#pragma once

#if defined(__CUDACC__)
#define DEVICE __device__ __forceinline__
// For what is too large to be copied to each place that calls it.
#define DEVICE_CALL __device__ __noinline__
#define UNROLL _Pragma("unroll")
#else
#define DEVICE inline
#define DEVICE_CALL inline
#define UNROLL
#endif

namespace proofmill {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "unusual integers");

// Which thread of which block runs.
struct Thread {
  u32 index;
  u32 block;
  u32 threads;

  DEVICE u32 in_grid() const { return block * threads + index; }
};

// For kernels whose blocks or threads keep nothing.
struct Nothing {};

#if defined(__CUDACC__)

template <class Kernel>
DEVICE void run(const typename Kernel::Args& args) {
  __shared__ typename Kernel::Shared shared;
  typename Kernel::Own own;
  const Thread thread{threadIdx.x, blockIdx.x, blockDim.x};
  const u32 phases = Kernel::phases(args);
  for (u32 number = 0; number < phases; ++number) {
    if (number > 0) __syncthreads();
    Kernel::phase(args, shared, own, thread, number);
  }
}

// One block for each multiprocessor will do: the compiler may not spill registers to fit more.
#define KERNEL(name, ...)                                                              \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__::THREADS, 1)                \
      name(const __VA_ARGS__::Args args) {                                             \
    proofmill::run<__VA_ARGS__>(args);                                                 \
  }

#else

// Runs a grid, block after block; a phase's threads from the first to the last, or backwards.
template <class Kernel>
void run(const typename Kernel::Args& args, u32 blocks, u32 threads, bool backwards) {
  auto* const own = new typename Kernel::Own[threads];
  auto* const shared = new typename Kernel::Shared;
  const u32 phases = Kernel::phases(args);
  for (u32 block = 0; block < blocks; ++block) {
    for (u32 number = 0; number < phases; ++number) {
      for (u32 i = 0; i < threads; ++i) {
        const u32 index = backwards ? threads - 1 - i : i;
        Kernel::phase(args, *shared, own[index], Thread{index, block, threads}, number);
      }
    }
  }
  delete shared;
  delete[] own;
}

// Answers whether the launch fits the kernel.
#define KERNEL(name, ...)                                                              \
  extern "C" bool name(const void* args, unsigned bytes, unsigned blocks,              \
                       unsigned threads, bool backwards) {                             \
    if (bytes != sizeof(__VA_ARGS__::Args) || threads > __VA_ARGS__::THREADS) {        \
      return false;                                                                    \
    }                                                                                  \
    proofmill::run<__VA_ARGS__>(*static_cast<const __VA_ARGS__::Args*>(args), blocks,  \
                                threads, backwards);                                   \
    return true;                                                                       \
  }

#endif

}  // namespace proofmill
