#include "attention.h"

#include <algorithm>
#include <cstring>

#include "share.h"

namespace twostroke {
namespace {

// A few rows of one run against the keys of one kv head, chunks [begin, end).
struct Span {
  const Run* run;
  int row, rows;  // within the run
  int kv_head;
  int begin, end;
  int64_t partials;  // where its chunks' partial results lie, or -1: merged at once
};

int chunks_below(int positions) { return (positions + chunk_keys - 1) / chunk_keys; }

// One thread's share of the work on one attention layer.
class Worker {
 public:
  Worker(const Attention& a, std::vector<float>& memory, std::vector<float>& partials)
      : a_(a),
        kernels_(kernels()),
        dim_(a.store->head_dim),
        tile_(kernels_.tile_queries(a.store->type)),
        group_(a.heads / a.store->kv_heads),
        memory_(memory),
        partials_(partials) {}

  // `after` is what this thread will probably do next, or null.
  void attend(const Span& span, const Span* after) {
    if (!placed_ || !same_queries(span, *placed_)) place(span);
    Blocks blocks = locate(span, span.begin);
    for (int chunk = span.begin; chunk + 1 < span.end; chunk++) {
      const Blocks next = locate(span, chunk + 1);
      attend_chunk(span, chunk, blocks, next);
      blocks = next;
    }
    attend_chunk(span, span.end - 1, blocks, after ? locate(*after, after->begin) : Blocks{});
    if (span.partials < 0) finish(span);
  }

  // Merges the kept chunks of one query head of one row, where the output lies.
  void merge_kept(const Span& span, int row, int head_in_group) {
    const int chunks = chunks_below(position(span, row) + 1), query = row * group_ + head_in_group;
    const float* kept = kept_result(span, 0, query);
    const int64_t stride = kept_result(span, 1, query) - kept;
    float maximum, sum, *values = out(span, query);
    const Partial done{&maximum, &sum, values};
    kernels_.merge(done, {kept + dim_, kept + dim_ + 1, kept, chunks, stride}, dim_, true);
    kernels_.finish(done, dim_, values);
  }

 private:
  // The head's part of each block of a chunk that the span's last row sees.
  struct Blocks {
    const uint8_t* at[chunk_blocks];
    int count = 0;
  };

  static bool same_queries(const Span& a, const Span& b) {
    return a.run == b.run && a.row == b.row && a.kv_head == b.kv_head;
  }
  int queries(const Span& span) const { return span.rows * group_; }
  int position(const Span& span, int row) const { return span.run->position + span.row + row; }
  int64_t step_row(const Span& span, int query) const { return span.run->first + span.row + query / group_; }
  int64_t head_offset(const Span& span, int query) const {
    return static_cast<int64_t>(span.kv_head * group_ + query % group_) * dim_;
  }
  float* out(const Span& span, int query) const {
    return a_.out + step_row(span, query) * a_.out_stride + head_offset(span, query);
  }
  float* kept_result(const Span& span, int chunk, int query) const {
    return partials_.data() + span.partials + (static_cast<int64_t>(chunk) * queries(span) + query) * (dim_ + 2);
  }

  float* reserve(size_t floats) {  // aligned to a cache line
    constexpr size_t line = 16;
    if (memory_.size() < floats + line) memory_.resize(floats + line);
    const auto misaligned = reinterpret_cast<uintptr_t>(memory_.data()) / sizeof(float) % line;
    return memory_.data() + (line - misaligned) % line;
  }

  void lay_out(const Span& span) {
    const size_t all = queries(span), tile = tile_;
    query_ = reserve(all * dim_ + tile * (chunk_keys + dim_ + 2) + all * (dim_ + 2));
    weights_ = query_ + all * dim_;
    values_ = weights_ + tile * chunk_keys;
    maxima_ = values_ + tile * dim_;
    sums_ = maxima_ + tile;
    running_ = sums_ + tile;
  }

  // Queries in tiles of nearly equal size.
  template <class Body>
  void each_tile(const Span& span, const Body& body) const {
    const int all = queries(span), tiles = (all + tile_ - 1) / tile_;
    for (int t = 0; t < tiles; t++) body(all * t / tiles, all * (t + 1) / tiles);
  }

  void place(const Span& span) {
    lay_out(span);
    gather_queries(span);
    placed_ = &span;
  }

  void gather_queries(const Span& span) {
    each_tile(span, [&](int from, int to) {
      for (int q = from; q < to; q++) {
        const float* query = a_.queries + step_row(span, q) * a_.query_stride + head_offset(span, q);
        kernels_.place_query(a_.store->type, query, a_.scale, dim_, tile(from), q - from, to - from);
      }
    });
  }

  Blocks locate(const Span& span, int chunk) const {
    const int start = chunk * chunk_keys, seen = std::min(position(span, span.rows - 1) + 1 - start, chunk_keys);
    Blocks blocks{};
    for (int& b = blocks.count; b * block_tokens < seen; b++)
      blocks.at[b] = a_.store->head(a_.layer, span.run->blocks[start / block_tokens + b], span.kv_head);
    return blocks;
  }

  void attend_chunk(const Span& span, int chunk, const Blocks& blocks, const Blocks& next) {
    const int start = chunk * chunk_keys;
    each_tile(span, [&](int from, int to) {
      int valid[64];
      for (int q = from; q < to; q++)
        valid[q - from] = std::clamp(position(span, q / group_) + 1 - start, 0, chunk_keys);
      kernels_.attend_chunk({blocks.at, next.at, from == 0 ? next.count : 0, a_.store->type, dim_, to - from, valid,
                             tile(from), weights_, maxima_, sums_, values_});
      for (int q = from; q < to; q++)
        if (valid[q - from] > 0) keep(span, chunk, q, q - from);
    });
  }

  void keep(const Span& span, int chunk, int query, int slot) {
    const float* values = values_ + static_cast<int64_t>(slot) * dim_;
    if (span.partials < 0)
      return kernels_.merge(running(query), {maxima_ + slot, sums_ + slot, values, 1, 0}, dim_, chunk == 0);
    float* kept = kept_result(span, chunk, query);
    std::memcpy(kept, values, sizeof(float) * dim_);
    kept[dim_] = maxima_[slot], kept[dim_ + 1] = sums_[slot];
  }

  float* tile(int first) const { return query_ + static_cast<int64_t>(first) * dim_; }
  Partial running(int query) const {
    float* p = running_ + static_cast<int64_t>(query) * (dim_ + 2);
    return {p + dim_, p + dim_ + 1, p};
  }

  void finish(const Span& span) {
    for (int q = 0; q < queries(span); q++) kernels_.finish(running(q), dim_, out(span, q));
  }

  const Attention& a_;
  const Kernels& kernels_;
  const int dim_, tile_, group_;
  std::vector<float>& memory_;
  std::vector<float>& partials_;
  const Span* placed_ = nullptr;  // whose queries lie there, for the next chunks of the same
  float *query_ = nullptr, *weights_ = nullptr, *values_ = nullptr, *maxima_ = nullptr, *sums_ = nullptr,
        *running_ = nullptr;
};

struct Plan {
  std::vector<Span> spans;  // to attend, longest first
  std::vector<Span> kept;   // whole row blocks whose chunks are merged afterwards
};

// Row blocks large enough to use a loaded chunk many times; a block that would keep one thread busy for too long is
// split by chunks.
Plan plan(const Attention& a, const std::vector<Run>& runs, int threads) {
  const int group = a.heads / a.store->kv_heads, rows_each = std::max(1, 96 / group);
  std::vector<Span> whole;
  double work = 0;
  const auto cost = [](const Span& s) { return static_cast<double>(s.rows) * s.end * chunk_keys; };
  for (const Run& run : runs)
    for (int row = 0; row < run.rows; row += rows_each) {
      const int rows = std::min(rows_each, run.rows - row), chunks = chunks_below(run.position + row + rows);
      for (int h = 0; h < a.store->kv_heads; h++) {
        whole.push_back({&run, row, rows, h, 0, chunks, -1});
        work += cost(whole.back());
      }
    }
  std::stable_sort(whole.begin(), whole.end(), [&](const Span& x, const Span& y) { return cost(x) > cost(y); });
  Plan plan;
  int64_t partials = 0;
  for (Span span : whole) {
    if (threads == 1 || span.end == 1 || cost(span) * threads * 4 <= work) {
      plan.spans.push_back(span);
      continue;
    }
    span.partials = partials;
    partials += static_cast<int64_t>(span.end) * span.rows * group * (a.store->head_dim + 2);
    plan.kept.push_back(span);
    for (int chunk = 0; chunk < span.end; chunk++) {
      plan.spans.push_back(span);
      plan.spans.back().begin = chunk, plan.spans.back().end = chunk + 1;
    }
  }
  return plan;
}

int64_t partial_floats(const Plan& plan, const Attention& a) {
  if (plan.kept.empty()) return 0;
  const Span& last = plan.kept.back();
  return last.partials +
         static_cast<int64_t>(last.end) * last.rows * (a.heads / a.store->kv_heads) * (a.store->head_dim + 2);
}

}  // namespace

void attend(const Attention& a, const std::vector<Run>& runs, AttentionScratch& scratch, Pool& pool) {
  const Plan work = plan(a, runs, pool.threads());
  auto& partials = scratch.partials();
  partials.resize(std::max<size_t>(partials.size(), partial_floats(work, a)));
  const auto count = static_cast<uint32_t>(work.spans.size());
  std::vector<Worker> workers;
  for (int t = 0; t < pool.threads(); t++) workers.emplace_back(a, scratch.thread(t), partials);
  share_out(pool, pool.threads(), count, 1, [&](int thread, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; i++)
      workers[thread].attend(work.spans[i], i + 1 < count ? &work.spans[i + 1] : nullptr);
  });
  if (work.kept.empty()) return;
  const int group = a.heads / a.store->kv_heads;
  pool.run([&](int thread, int threads) {
    int item = 0;
    for (const Span& span : work.kept)
      for (int query = 0; query < span.rows * group; query++)
        if (item++ % threads == thread) workers[thread].merge_kept(span, query / group, query % group);
  });
}

}  // namespace twostroke
