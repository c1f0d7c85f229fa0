// Tensor maps, launches and registration of the kernels of sm90.cuh.
#pragma once
#include "sm90.cuh"
#include <cstring>
#include <cudaTypedefs.h>

namespace sm90 {

inline PFN_cuTensorMapEncodeTiled_v12000 encoder() {
    static PFN_cuTensorMapEncodeTiled_v12000 encode = [] {
        void *f = nullptr;
        cudaDriverEntryPointQueryResult found;
        CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000,
                                               cudaEnableDefault, &found));
        return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(
            found == cudaDriverEntryPointSuccess ? f : nullptr);
    }();
    return encode;
}

// rows x cols stored row by row, read or written in boxes of box_rows x box_cols.
inline bool make_map(CUtensorMap *map, bool bf16, const void *base, int rows, int cols, int64_t ld,
                     int batch, int64_t stride, int box_rows, int box_cols) {
    const cuuint64_t extents[3] = {cuuint64_t(cols), cuuint64_t(rows), cuuint64_t(batch)};
    const cuuint64_t pitches[2] = {cuuint64_t(ld) * 2,
                                   cuuint64_t(batch > 1 ? stride : ld * rows + 7 & ~7) * 2};
    const cuuint32_t box[3] = {cuuint32_t(box_cols), cuuint32_t(box_rows), 1}, steps[3] = {1, 1, 1};
    const auto swizzle = box_cols == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                         : box_cols == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                          : CU_TENSOR_MAP_SWIZZLE_32B;
    // Promoted, rows that begin inside a line of L2 fetch twice what they hold.
    const auto promotion =
        ld % 64 == 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_NONE;
    return encoder()(map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                     3, const_cast<void *>(base), extents, pitches, box, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

inline int multiprocessors() {
    static int count = [] {
        int device, v;
        CHECK(cudaGetDevice(&device));
        CHECK(cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, device));
        return v;
    }();
    return count;
}

template <class C>
cudaError_t launch(const Problem &original, const Operands &given, int group, int overlap,
                   cudaStream_t stream) {
    Problem p = original;
    Operands o = given;
    if (C::SWAP) { // C' = B' A': what was stored along K still is
        std::swap(p.m, p.n), std::swap(o.a, o.b);
        std::swap(p.lda, p.ldb), std::swap(p.stride_a, p.stride_b);
        p.a_km = !original.b_nk, p.b_nk = !original.a_km;
    }
    if (!aligned16(o.a) || !aligned16(o.b) || (C::ENGINE && !aligned16(o.c)))
        return cudaErrorMisalignedAddress;
    CUtensorMap a, b, c;
    memset(&c, 0, sizeof c);
    if (!make_map(&a, C::BF16, o.a, p.a_rows(), p.a_cols(), p.lda, p.batch, p.stride_a,
                  C::A_KM ? 64 : C::BOX_A, 64) ||
        !make_map(&b, C::BF16, o.b, p.b_rows(), p.b_cols(), p.ldb, p.batch, p.stride_b,
                  C::B_NK ? C::BOX_B : 64, 64) ||
        (C::ENGINE &&
         !make_map(&c, C::BF16, o.c, p.m, p.n, p.ldc, p.batch, p.stride_c, 64, C::PIECE)))
        return cudaErrorInvalidValue;
    const int tiles_m = ceil_div(p.m, C::BM * C::CLM), tiles_n = ceil_div(p.n, C::BN * C::CLN);
    const int clusters = tiles_m * tiles_n * p.batch;
    const Args args{p.m,     p.n,    p.k, p.batch, tiles_m,    tiles_n,     group,      clusters,
                    p.alpha, p.beta, o.c, p.ldc,   p.stride_c, overlap > 0, overlap > 1};
    const auto kernel = gemm<C>;
    static const cudaError_t prepared =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, C::SHARED);
    if (prepared != cudaSuccess)
        return prepared;
    const int most = multiprocessors() * C::RESIDENT / C::CLUSTER;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3((C::PERSISTENT && clusters > most ? most : clusters) * C::CLUSTER);
    config.blockDim = dim3(C::THREADS);
    config.dynamicSmemBytes = C::SHARED;
    config.stream = stream;
    cudaLaunchAttribute attributes[2];
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {C::CLUSTER, 1, 1};
    config.attrs = attributes;
    config.numAttrs = 2;
    return cudaLaunchKernelEx(&config, kernel, a, b, c, args);
}

// V: BM, BN, STAGES, CM, CN, CLM, CLN, SPLIT, PINGPONG, SWAP, STORE, PERSISTENT.
// overlap: 1 lets the next kernel begin early, 2 fetches inputs into L2 before the wait too.
// FOR_TYPES: bit 0 bf16, bit 1 f16. FOR_LAYOUTS: bits 0 to 3 for NN, TN, NT, TT.
template <int FOR_TYPES, int FOR_LAYOUTS, int... V>
Candidate candidate(const std::string &name, int group, int overlap) {
    auto run = [=](const Problem &p, const Operands *o, cudaStream_t stream) {
        // Without operands: is there a kernel?
        cudaError_t status = cudaErrorNotSupported;
        auto one = [&](auto bf16, auto a_km, auto b_nk) {
            constexpr bool BF16 = decltype(bf16)::value, A = decltype(a_km)::value,
                           B = decltype(b_nk)::value;
            if constexpr ((FOR_TYPES >> !BF16 & 1) && (FOR_LAYOUTS >> (2 * A + B) & 1)) {
                using Plain = Config<BF16, A, B, V...>;
                using C = std::conditional_t<Plain::SWAP, Config<BF16, !B, !A, V...>, Plain>;
                if constexpr (C::POSSIBLE)
                    if (p.bf16 == BF16 && p.a_km == A && p.b_nk == B &&
                        (!C::ENGINE || p.aligned_c()))
                        status = o ? launch<C>(p, *o, group, overlap, stream) : cudaSuccess;
            }
        };
        auto layouts = [&](auto bf16) {
            one(bf16, std::false_type(), std::false_type());
            one(bf16, std::false_type(), std::true_type());
            one(bf16, std::true_type(), std::false_type());
            one(bf16, std::true_type(), std::true_type());
        };
        layouts(std::true_type());
        layouts(std::false_type());
        return status;
    };
    return {name,
            [run](const Problem &p) {
                return p.aligned_a() && p.aligned_b() && run(p, nullptr, nullptr) == cudaSuccess;
            },
            [](const Problem &) { return size_t(0); },
            [run](const Problem &p, const Operands &o, cudaStream_t stream) {
                return run(p, &o, stream);
            }};
}

// The same for rows of any pitch: what is not aligned is copied to rows of whole words first.
inline Candidate with_copies(const Candidate &inner) {
    auto aligned = [](const Problem &p) {
        Problem q = p;
        q.lda = (p.lda + 63) / 64 * 64, q.ldb = (p.ldb + 63) / 64 * 64;
        q.stride_a = q.a_rows() * q.lda, q.stride_b = q.b_rows() * q.ldb;
        return q;
    };
    auto bytes = [](int64_t elements) { return size_t(elements * 2 + 255) / 256 * 256; };
    return {"copy+" + inner.name,
            [=](const Problem &p) {
                return !(p.aligned_a() && p.aligned_b()) && p.stride_a == p.a_rows() * p.lda &&
                       p.stride_b == p.b_rows() * p.ldb && inner.supports(aligned(p));
            },
            [=](const Problem &p) {
                const Problem q = aligned(p);
                return bytes(q.a_elements()) + bytes(q.b_elements());
            },
            [=](const Problem &p, const Operands &given, cudaStream_t stream) {
                Problem q = p;
                const Problem r = aligned(p);
                Operands o = given;
                realign::Copy a, b;
                char *at = static_cast<char *>(o.workspace);
                if (!p.aligned_a() || !aligned16(o.a)) {
                    q.lda = r.lda, q.stride_a = r.stride_a, o.a = at;
                    a = {given.a,    at,    p.a_rows() * p.batch,
                         p.a_cols(), p.lda, p.a_rows() * p.batch,
                         p.a_cols(), q.lda};
                }
                at += bytes(r.a_elements());
                if (!p.aligned_b() || !aligned16(o.b)) {
                    q.ldb = r.ldb, q.stride_b = r.stride_b, o.b = at;
                    b = {given.b,    at,    p.b_rows() * p.batch,
                         p.b_cols(), p.ldb, p.b_rows() * p.batch,
                         p.b_cols(), q.ldb};
                }
                const cudaError_t status = realign::copy(a, b, stream);
                return status == cudaSuccess ? inner.launch(q, o, stream) : status;
            }};
}

// A tile's candidates: as it is, over copies, and small ones with more overlap of launches.
template <int FOR_TYPES, int FOR_LAYOUTS, int BM, int BN, int... V>
void add(const std::string &name, int group) {
    for (int overlap = 0; overlap < (BM * BN <= 128 * 128 ? 3 : 1); ++overlap) {
        const char *const suffix[] = {"", "-e", "-f"};
        const Candidate made =
            candidate<FOR_TYPES, FOR_LAYOUTS, BM, BN, V...>(name + suffix[overlap], group, overlap);
        candidates().push_back(made);
        if (overlap < 2)
            candidates().push_back(with_copies(made));
    }
}

} // namespace sm90
