// One candidate on one problem: right, in bounds, on its stream, the same twice.
#pragma once
#include "oracle.h"

// Device memory between two guards of NaNs, so that what is read beyond an end shows in C.
class Guarded {
  public:
    static constexpr size_t GUARD = 4096;
    static constexpr int BYTE = 0xff;
    // `shift` bytes move the buffer off its alignment.
    explicit Guarded(size_t bytes, size_t shift = 0) : bytes_(bytes), shift_(shift) {
        total_ = GUARD + (bytes + shift + 255) / 256 * 256 + GUARD;
        CHECK(cudaMalloc(&base_, total_));
        CHECK(cudaMemset(base_, BYTE, total_));
    }
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;
    ~Guarded() { CHECK(cudaFree(base_)); }
    uint16_t *get() const { return reinterpret_cast<uint16_t *>(base_ + GUARD + shift_); }
    size_t bytes() const { return bytes_; }
    bool intact() const {
        const size_t end = GUARD + shift_ + bytes_;
        return oracle::all_bytes(base_, GUARD + shift_, BYTE) &&
               oracle::all_bytes(base_ + end, total_ - end, BYTE);
    }

  private:
    char *base_ = nullptr;
    size_t bytes_, shift_, total_ = 0;
};

struct Verdict {
    bool right = false;
    std::string reason; // why it was refused
    oracle::Error error;
    bool same_twice = false;
};

// `shift` elements move A, B and C off 16-byte alignment.
Verdict judge(const Candidate &candidate, const Problem &problem, uint64_t seed, int shift = 0);

// Candidates that are wrong in one way each, with the problem that must show it.
struct Control {
    Candidate candidate;
    Problem problem;
    bool right; // the plain kernel, which must pass
};
std::vector<Control> controls();
