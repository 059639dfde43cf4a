// A pool whose threads wait for work by spinning a short, adaptive while and then sleeping.
//
// A job is announced by raising `generation`; whoever went to sleep is counted in `sleepers`, so that a hot pool is
// dispatched to without a system call.  Both are sequentially consistent: either the dispatcher sees the sleeper or
// the sleeper sees the job.
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace twostroke {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr microseconds shortest_spin{10}, longest_spin{100};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `ready` or the time is over; says whether it was ready.
template <class Ready>
bool spin(microseconds limit, const Ready& ready) {
  const auto end = Clock::now() + limit;
  do {
    for (int i = 0; i < 32; i++) {
      if (ready()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return ready();
}

}  // namespace

struct Pool::State {
  explicit State(int count) : threads(count) {
    for (int t = 1; t < count; t++) workers.emplace_back([this, t] { work(t); });
  }

  ~State() {
    stopping.store(true);
    announce();
    for (auto& worker : workers) worker.join();
  }

  void announce() {
    generation.fetch_add(1);
    if (sleepers.load() == 0) return;
    std::lock_guard<std::mutex> lock(mutex);
    wake.notify_all();
  }

  void work(int thread) {
    uint64_t seen = 0;
    microseconds patience = longest_spin;
    while (true) {
      patience = await(seen, patience);
      seen++;
      if (stopping.load()) return;
      perform(thread);
      pending.fetch_sub(1, std::memory_order_release);
    }
  }

  // Waits for the job after `seen`; answers how long to spin the next time.
  microseconds await(uint64_t seen, microseconds patience) {
    const auto ready = [&] { return generation.load() != seen; };
    if (spin(patience, ready)) return std::min(2 * patience, longest_spin);
    std::unique_lock<std::mutex> lock(mutex);
    sleepers.fetch_add(1);
    wake.wait(lock, ready);
    sleepers.fetch_sub(1);
    return std::max(patience / 2, shortest_spin);
  }

  void perform(int thread) noexcept {
    try {
      call(context, thread, threads);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void dispatch(void (*job)(void*, int, int), void* argument) {
    call = job;
    context = argument;
    pending.store(threads - 1, std::memory_order_relaxed);
    announce();
    perform(0);
    const auto finished = [&] { return pending.load(std::memory_order_acquire) == 0; };
    while (!spin(longest_spin, finished)) std::this_thread::yield();
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  const int threads;
  void (*call)(void*, int, int) = nullptr;
  void* context = nullptr;
  std::exception_ptr failure;
  alignas(64) std::atomic<uint64_t> generation{0};
  alignas(64) std::atomic<int> pending{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;
};

Pool::Pool(int threads) {
  if (threads < 1 || threads > 1024) throw std::invalid_argument("threads must be 1 to 1024, not " + std::to_string(threads));
  state_ = new State(threads);
}

Pool::~Pool() { delete state_; }

int Pool::threads() const { return state_->threads; }

void Pool::dispatch(void (*call)(void*, int, int), void* context) {
  if (state_->threads == 1) return call(context, 0, 1);
  state_->dispatch(call, context);
}

}  // namespace twostroke
