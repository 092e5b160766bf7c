// SPDX-License-Identifier: Apache-2.0

#include "sim/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "percolator/spi/mutex.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PERCOLATOR_SIM_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define PERCOLATOR_SIM_TSAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PERCOLATOR_SIM_ASAN
#endif
#if defined(__SANITIZE_THREAD__)
#define PERCOLATOR_SIM_TSAN
#endif

#ifdef PERCOLATOR_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef PERCOLATOR_SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// With shadow stacks a switch has more to do than the code below does.
#if defined(__x86_64__) && !defined(__SHSTK__) && !defined(PERCOLATOR_SIM_UCONTEXT)
#define PERCOLATOR_SIM_OWN_SWITCH
#else
#include <ucontext.h>
#endif

#ifdef PERCOLATOR_SIM_OWN_SWITCH
extern "C" {
// Saves the registers that a call must preserve on the current stack, stores its position in `*from`, and restores
// those of the stack `to`. Signal masks and floating-point modes are not switched, because this program does not change
// them; swapcontext needs two system calls for them.
void percolator_sim_switch(void** from, void* to);
// The start of a new stack: calls r13 with r12.
void percolator_sim_begin();
}
// clang-format off
asm(R"(
  .text
  .p2align 4
  .globl percolator_sim_switch
  .hidden percolator_sim_switch
  .type percolator_sim_switch, @function
percolator_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size percolator_sim_switch, .-percolator_sim_switch

  .globl percolator_sim_begin
  .hidden percolator_sim_begin
  .type percolator_sim_begin, @function
percolator_sim_begin:
  .cfi_startproc
  .cfi_undefined rip
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
  .size percolator_sim_begin, .-percolator_sim_begin
)");
// clang-format on
#endif

namespace percolator::sim {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

struct Stack {
  char* bottom;  // above the inaccessible page
  size_t size;
};

Stack MapStack() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapped = mmap(nullptr, page + Fiber::kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) Fail("no memory for the stack of a fiber");
  if (mprotect(mapped, page, PROT_NONE) != 0) Fail("cannot guard the stack of a fiber");
  return {static_cast<char*>(mapped) + page, Fiber::kStackBytes};
}

// Unused stacks. One pool for all threads.
class StackPool {
 public:
  static StackPool* Shared() {
    static StackPool* const pool = new StackPool;
    return pool;
  }

  Stack Take() {
    MutexLock lock(&mutex_);
    if (free_.empty()) return MapStack();
    const Stack stack = free_.back();
    free_.pop_back();
    return stack;
  }

  void Give(const Stack& stack) {
#ifdef PERCOLATOR_SIM_ASAN
    // A dropped fiber leaves the marks of its frames behind.
    __asan_unpoison_memory_region(stack.bottom, stack.size);
#endif
    MutexLock lock(&mutex_);
    free_.push_back(stack);
  }

 private:
  Mutex mutex_;
  std::vector<Stack> free_ ABSL_GUARDED_BY(mutex_);
};

// The state of a stack while another one runs, and how to switch back to it.
#ifdef PERCOLATOR_SIM_OWN_SWITCH
class Left {
 public:
  // Prepares a new stack so that it calls `body`, which never returns.
  void Prepare(const Stack& stack, void (*body)(void*), void* argument) {
    auto* const end = reinterpret_cast<void**>(stack.bottom + stack.size);
    // r15, r14, r13, r12, rbx, rbp, and the return address. This aligns the stack as required before a call.
    const std::array<void*, 7> words = {nullptr,
                                        nullptr,
                                        reinterpret_cast<void*>(body),
                                        argument,
                                        nullptr,
                                        nullptr,
                                        reinterpret_cast<void*>(&percolator_sim_begin)};
    at_ = end - words.size();
    std::copy(words.begin(), words.end(), static_cast<void**>(at_));
  }
  // Saves the running stack in `*from`.
  void GoOn(Left* from) { percolator_sim_switch(&from->at_, at_); }

 private:
  void* at_ = nullptr;
};
#else
class Left {
 public:
  void Prepare(const Stack& stack, void (*body)(void*), void* argument) {
    if (getcontext(&context_) != 0) Fail("getcontext");
    context_.uc_stack.ss_sp = stack.bottom;
    context_.uc_stack.ss_size = stack.size;
    context_.uc_link = nullptr;
    body_ = body;
    argument_ = argument;
    // makecontext passes ints, so the pointer is passed in two halves.
    const uint64_t self = reinterpret_cast<uintptr_t>(this);
    makecontext(&context_, reinterpret_cast<void (*)()>(&Begin), 2, static_cast<unsigned int>(self >> 32),
                static_cast<unsigned int>(self));
  }
  void GoOn(Left* from) {
    if (swapcontext(&from->context_, &context_) != 0) Fail("swapcontext");
  }

 private:
  static void Begin(unsigned int high, unsigned int low) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): see makecontext above.
    auto* const self = reinterpret_cast<Left*>(static_cast<uintptr_t>((uint64_t{high} << 32) | low));
    self->body_(self->argument_);
  }

  ucontext_t context_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
};
#endif

}  // namespace

// The two contexts to switch between, and the data that the sanitizers need about them.
struct Fiber::Context {
  Context() : stack(StackPool::Shared()->Take()) {
#ifdef PERCOLATOR_SIM_TSAN
    tsan_fiber = __tsan_create_fiber(0);
#endif
  }
  ~Context() {
#ifdef PERCOLATOR_SIM_TSAN
    __tsan_destroy_fiber(tsan_fiber);
#endif
    StackPool::Shared()->Give(stack);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Switches from the caller of Resume into the fiber, and returns when it yields.
  void SwitchIn() {
#ifdef PERCOLATOR_SIM_TSAN
    tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber, 0);
#endif
#ifdef PERCOLATOR_SIM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack.bottom, stack.size);
#endif
    inside.GoOn(&resumer);
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  // Called in the fiber when it gets a turn.
  void ArriveInside([[maybe_unused]] void* fake_stack) {
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &resumer_bottom, &resumer_size);
#endif
  }

  // Switches from the fiber back to the caller of Resume. `last`: the fiber never returns, so its fake stack is
  // dropped.
  void SwitchOut([[maybe_unused]] bool last) {
#ifdef PERCOLATOR_SIM_TSAN
    __tsan_switch_to_fiber(tsan_resumer, 0);
#endif
    void* fake_stack = nullptr;
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, resumer_bottom, resumer_size);
#endif
    resumer.GoOn(&inside);
    ArriveInside(fake_stack);
  }

  const Stack stack;
  Left inside;
  Left resumer;
#ifdef PERCOLATOR_SIM_ASAN
  const void* resumer_bottom = nullptr;
  size_t resumer_size = 0;
#endif
#ifdef PERCOLATOR_SIM_TSAN
  void* tsan_fiber = nullptr;
  void* tsan_resumer = nullptr;
#endif
};

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)), context_(std::make_unique<Context>()) {
  context_->inside.Prepare(
      context_->stack, [](void* self) { static_cast<Fiber*>(self)->Run(); }, this);
}

Fiber::~Fiber() = default;

void Fiber::Run() {
  context_->ArriveInside(nullptr);
  body_();
  body_ = nullptr;
  finished_ = true;
  context_->SwitchOut(/*last=*/true);
  std::abort();  // a finished fiber is not resumed
}

void Fiber::Resume() {
  context_->SwitchIn();
  if (finished_) context_.reset();
}

void Fiber::Yield() { context_->SwitchOut(/*last=*/false); }

}  // namespace percolator::sim
