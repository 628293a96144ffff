// Our own threads, and the memory that a thread works in.
//
// Workers sleep until there is work and are never waited for busily. Whoever shares out work does
// its part of it, so that a call from a worker, or from several threads at once, cannot block. A
// forked child begins without workers.
#pragma once

#include <cstddef>
#include <cstdint>

// Headers are compiled for several vector units: what is always inlined is never linked across them.
#define FREIGHT_INLINE inline __attribute__((always_inline))

namespace freight {

using Task = void (*)(void* context, std::int64_t index);

// Run task(context, index) for every index below count, on as many threads as are allowed.
void share(std::int64_t count, Task task, void* context);

template <class Work>
FREIGHT_INLINE void share(std::int64_t count, const Work& work) {
    share(
        count, [](void* context, std::int64_t index) { (*static_cast<const Work*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&work)));
}

// The indices below count in the order of falling a[index] * b[index]: what is long is begun first, so
// that no thread is left with it while the others have nothing to do.
void largest_first(const std::int64_t* a, const std::int64_t* b, std::int64_t count, std::int64_t* order);

void set_threads(int count);       // of this process
void set_own_threads(int count);   // of the calling thread alone
int get_threads();                 // of the calling thread

// Memory of the calling thread, given out piece by piece and taken back all at once.
class Scratch {
  public:
    static Scratch& mine();
    Scratch() = default;
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    template <class T>
    FREIGHT_INLINE T* take(std::size_t count) {
        return static_cast<T*>(bytes(count * sizeof(T)));
    }

  private:
    struct Piece {
        char* memory;
        std::size_t size, used;
        Piece* before;
    };
    friend class ScratchFrame;

    void* bytes(std::size_t size);
    void drop(Piece* until, std::size_t used);
    void free_last();

    Piece* last_ = nullptr;
    std::size_t total_ = 0;
};

// What is taken while a frame exists is given back when it ends.
class ScratchFrame {
  public:
    FREIGHT_INLINE ScratchFrame()
        : scratch_(Scratch::mine()), piece_(scratch_.last_), used_(piece_ ? piece_->used : 0) {}
    FREIGHT_INLINE ~ScratchFrame() { scratch_.drop(piece_, used_); }
    ScratchFrame(const ScratchFrame&) = delete;
    ScratchFrame& operator=(const ScratchFrame&) = delete;

    template <class T>
    FREIGHT_INLINE T* take(std::size_t count) {
        return scratch_.take<T>(count);
    }

  private:
    Scratch& scratch_;
    Scratch::Piece* piece_;
    std::size_t used_;
};

}  // namespace freight
