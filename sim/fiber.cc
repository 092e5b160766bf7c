#include "sim/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "src/base/mutex.h"

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

namespace percolator::sim {
namespace {

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

struct Stack {
  char* bottom;  // above the page that can't be touched
  size_t size;
};

Stack MapStack() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const mapped = mmap(nullptr, page + Fiber::kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapped == MAP_FAILED) Fail("no memory for the stack of a fiber");
  if (mprotect(mapped, page, PROT_NONE) != 0) Fail("can't guard the stack of a fiber");
  return {static_cast<char*>(mapped) + page, Fiber::kStackBytes};
}

// Stacks that no fiber uses. One pool for all threads.
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
    // A fiber that was forgotten leaves the marks of its frames behind.
    __asan_unpoison_memory_region(stack.bottom, stack.size);
#endif
    MutexLock lock(&mutex_);
    free_.push_back(stack);
  }

 private:
  Mutex mutex_;
  std::vector<Stack> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

// The two contexts to switch between, and what the sanitizers want to know of them.
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

  // From whoever calls Resume into the fiber, and back when it yields.
  void SwitchIn() {
#ifdef PERCOLATOR_SIM_TSAN
    tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(tsan_fiber, 0);
#endif
#ifdef PERCOLATOR_SIM_ASAN
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(&fake_stack, stack.bottom, stack.size);
#endif
    if (swapcontext(&resumer, &inside) != 0) Fail("swapcontext");
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  }

  // The fiber has got its first turn, or another.
  void ArriveInside([[maybe_unused]] void* fake_stack) {
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, &resumer_bottom, &resumer_size);
#endif
  }

  // From the fiber back to whoever called Resume. `last`: never to return, its fake stack is given up.
  void SwitchOut([[maybe_unused]] bool last) {
#ifdef PERCOLATOR_SIM_TSAN
    __tsan_switch_to_fiber(tsan_resumer, 0);
#endif
    void* fake_stack = nullptr;
#ifdef PERCOLATOR_SIM_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, resumer_bottom, resumer_size);
#endif
    if (swapcontext(&inside, &resumer) != 0) Fail("swapcontext");
    ArriveInside(fake_stack);
  }

  const Stack stack;
  ucontext_t inside;
  ucontext_t resumer;
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
  if (getcontext(&context_->inside) != 0) Fail("getcontext");
  context_->inside.uc_stack.ss_sp = context_->stack.bottom;
  context_->inside.uc_stack.ss_size = context_->stack.size;
  context_->inside.uc_link = nullptr;
  // makecontext passes ints: the pointer goes in two halves.
  const uint64_t self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_->inside, reinterpret_cast<void (*)()>(&Fiber::Enter), 2, static_cast<unsigned int>(self >> 32),
              static_cast<unsigned int>(self));
}

Fiber::~Fiber() = default;

void Fiber::Enter(unsigned int high, unsigned int low) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): see makecontext above.
  reinterpret_cast<Fiber*>(static_cast<uintptr_t>((uint64_t{high} << 32) | low))->Run();
}

void Fiber::Run() {
  context_->ArriveInside(nullptr);
  body_();
  body_ = nullptr;
  finished_ = true;
  context_->SwitchOut(/*last=*/true);
  std::abort();  // nobody resumes a fiber that has finished
}

void Fiber::Resume() {
  context_->SwitchIn();
  if (finished_) context_.reset();
}

void Fiber::Yield() { context_->SwitchOut(/*last=*/false); }

}  // namespace percolator::sim
