#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace freight {
namespace {

std::atomic<int> process_threads{1};
thread_local int own_threads = 0;  // 0: those of the process

struct Job {
    std::int64_t count;
    Task task;
    void* context;
    int limit;  // threads at most, the caller included
    int working = 1;
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure = nullptr;
    std::mutex failing;

    Job(std::int64_t count, Task task, void* context, int limit)
        : count(count), task(task), context(context), limit(limit) {}

    void run() {
        try {
            for (std::int64_t k = next++; k < count; k = next++) task(context, k);
        } catch (...) {
            std::lock_guard<std::mutex> lock(failing);
            failure = std::current_exception();
            next = count;
        }
    }
};

constexpr std::chrono::microseconds kAwake{50};

class Pool {
  public:
    void share(Job& job) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            jobs_.push_back(&job);
            ++announced_;
            while (workers_ < job.limit - 1) {
                try {
                    std::thread([this] { work(); }).detach();
                } catch (const std::exception&) {
                    break;  // no more threads are to be had: fewer will do
                }
                ++workers_;
            }
        }
        std::int64_t helpers = std::min<std::int64_t>(job.limit, job.count) - 1;
        for (std::int64_t k = 0; k < helpers; ++k) wake_.notify_one();
        job.run();
        std::unique_lock<std::mutex> lock(mutex_);
        jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
        --job.working;
        done_.wait(lock, [&job] { return job.working == 0; });
    }

  private:
    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            Job* job = open_job();
            if (!job) {
                await_announcement(lock);
                wake_.wait(lock, [&] { return (job = open_job()) != nullptr; });
            }
            ++job->working;
            lock.unlock();
            own_threads = job->limit;
            job->run();
            lock.lock();
            if (--job->working == 0) done_.notify_all();
        }
    }

    // Stay awake for a moment: the next batch often follows at once, and to be woken takes as long.
    void await_announcement(std::unique_lock<std::mutex>& lock) {
        const std::int64_t known = announced_;
        lock.unlock();
        const auto until = std::chrono::steady_clock::now() + kAwake;
        while (announced_ == known && std::chrono::steady_clock::now() < until) continue;
        lock.lock();
    }

    Job* open_job() {
        for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job)
            if ((*job)->working < (*job)->limit && (*job)->next < (*job)->count) return *job;
        return nullptr;
    }

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<Job*> jobs_;
    std::atomic<std::int64_t> announced_{0};
    int workers_ = 0;
};

std::atomic<Pool*> pool{nullptr};  // never destroyed: its workers may outlive everything else

Pool& the_pool() {
    Pool* existing = pool.load();
    if (!existing) {
#if !defined(_WIN32)
        static std::once_flag once;
        // The threads of the parent do not exist in its child, and its locks may be taken.
        std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { pool.store(nullptr); }); });
#endif
        auto* made = new Pool;
        if (pool.compare_exchange_strong(existing, made)) return *made;
        delete made;
    }
    return *existing;
}

constexpr std::size_t kAlignment = 64, kPiece = std::size_t{1} << 20, kKept = std::size_t{1} << 25;

}  // namespace

void set_threads(int count) { process_threads = std::max(count, 1); }
void set_own_threads(int count) { own_threads = std::max(count, 0); }
int get_threads() { return own_threads ? own_threads : process_threads.load(); }

void share(std::int64_t count, Task task, void* context) {
    int limit = get_threads();
    if (limit == 1 || count < 2) {
        for (std::int64_t k = 0; k < count; ++k) task(context, k);
        return;
    }
    Job job(count, task, context, limit);
    the_pool().share(job);
    if (job.failure) std::rethrow_exception(job.failure);
}

void largest_first(const std::int64_t* a, const std::int64_t* b, std::int64_t count, std::int64_t* order) {
    for (std::int64_t k = 0; k < count; ++k) order[k] = k;
    if (get_threads() == 1) return;
    std::sort(order, order + count, [=](std::int64_t x, std::int64_t y) {
        std::int64_t one = a[x] * b[x], other = a[y] * b[y];
        return one != other ? one > other : x < y;
    });
}

Scratch& Scratch::mine() {
    thread_local Scratch own;
    return own;
}

Scratch::~Scratch() {
    while (last_) free_last();
}

void Scratch::free_last() {
    Piece* piece = last_;
    last_ = piece->before;
    total_ -= piece->size;
    ::operator delete(piece->memory, std::align_val_t{kAlignment});
    delete piece;
}

void* Scratch::bytes(std::size_t size) {
    size = (size + kAlignment - 1) / kAlignment * kAlignment;
    if (!last_ || last_->used + size > last_->size) {
        std::size_t wanted = std::max(size, kPiece);
        auto* memory = static_cast<char*>(::operator new(wanted, std::align_val_t{kAlignment}));
        last_ = new Piece{memory, wanted, 0, last_};
        total_ += wanted;
    }
    void* result = last_->memory + last_->used;
    last_->used += size;
    return result;
}

// One piece, of all that was needed last time, is kept for the next problem.
void Scratch::drop(Piece* until, std::size_t used) {
    std::size_t needed = total_;
    bool several = last_ != until && last_->before != until;
    while (last_ != until && (several || until || last_->size > kKept)) free_last();
    if (last_) last_->used = last_ == until ? used : 0;
    if (last_ || !several || needed > kKept) return;
    try {
        bytes(needed);
        last_->used = 0;
    } catch (const std::bad_alloc&) {  // then the next problem asks again
    }
}

}  // namespace freight
