// A fixed set of threads that split output elements, never a reduction.
#pragma once
#include <cstddef>
#include <functional>

namespace twostroke {

// `run(f)` calls f(thread, threads) once on each thread and returns when all have finished (the caller is thread 0).
// Threads spin briefly, then sleep, so that an idle pool costs nothing.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  int threads() const;
  template <class F>
  void run(const F& f) {
    dispatch([](void* c, int t, int n) { (*static_cast<const F*>(c))(t, n); }, const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  void dispatch(void (*call)(void*, int, int), void* context);
  struct State;
  State* state_;
};

}  // namespace twostroke
