// bench controls | verify | time | list: see docs/cuda.md.
#include "finished/chosen.h"
#include "lt.h"
#include "measure.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

namespace {

struct Options {
    std::string command, only, out, shapes, layouts = "NN,TN", dtypes = "bf16";
    int rounds = 9, screen = 4;
    bool controls = true;
};

std::vector<std::string> split(const std::string &text, char by) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, by);)
        parts.push_back(part);
    return parts;
}

Options parse(int argc, char **argv) {
    Options o;
    o.command = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        const std::string name = argv[i];
        auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
        if (name == "--only")
            o.only = value();
        else if (name == "--out")
            o.out = value();
        else if (name == "--shapes")
            o.shapes = value();
        else if (name == "--layouts")
            o.layouts = value();
        else if (name == "--dtypes")
            o.dtypes = value();
        else if (name == "--rounds")
            o.rounds = std::stoi(value());
        else if (name == "--screen")
            o.screen = std::stoi(value());
        else if (name == "--no-controls")
            o.controls = false;
        else {
            fprintf(stderr, "bench: %s is no option\n", name.c_str());
            exit(2);
        }
    }
    return o;
}

// "MxNxK" or "BATCHxMxNxK".
Problem shaped(const std::string &shape, const std::string &layout, bool bf16) {
    std::vector<int> v;
    for (const std::string &part : split(shape, 'x'))
        v.push_back(std::stoi(part));
    const int batch = v.size() == 4 ? v[0] : 1, at = v.size() == 4;
    return make_problem(v[at], v[at + 1], v[at + 2], layout, bf16, batch);
}

bool chosen(const Options &o, const std::string &name) {
    if (o.only.empty())
        return true;
    for (const std::string &part : split(o.only, ','))
        if (name.find(part) != std::string::npos)
            return true;
    return false;
}

std::string describe(const Problem &p) {
    char text[160];
    snprintf(text, sizeof text, "%dx%dx%dx%d %s %s alpha %g beta %g ldc %lld", p.batch, p.m, p.n,
             p.k, p.layout().c_str(), p.bf16 ? "bf16" : "f16", p.alpha, p.beta,
             static_cast<long long>(p.ldc));
    return text;
}

// Every control must be refused and the plain kernel accepted, or nothing else counts.
void run_controls(uint64_t seed, bool talk) {
    oracle::held_against_host(seed);
    int refused = 0, accepted = 0;
    for (const Control &control : controls()) {
        const Verdict v = judge(control.candidate, control.problem, seed);
        if (talk)
            printf("control %-26s %-52s %s\n", control.candidate.name.c_str(),
                   describe(control.problem).c_str(),
                   v.right ? "accepted" : ("refused: " + v.reason).c_str());
        if (v.right != control.right) {
            fprintf(stderr, "judge: %s on %s was %s\n", control.candidate.name.c_str(),
                    describe(control.problem).c_str(),
                    v.right ? "accepted" : ("refused: " + v.reason).c_str());
            exit(2);
        }
        ++(v.right ? accepted : refused);
    }
    printf("judge: %d faulty kernels refused, %d runs of the plain one accepted\n", refused,
           accepted);
}

std::vector<Problem> verification_grid() {
    std::vector<Problem> all;
    int turn = 0;
    for (const char *layout : {"NN", "TN", "NT", "TT"}) {
        for (const auto &s : std::vector<std::vector<int>>{{128, 256, 64, 0},
                                                           {256, 512, 512, 0},
                                                           {200, 312, 504, 0},
                                                           {8, 8, 8, 8},
                                                           {1000, 1000, 1000, 0},
                                                           {16, 1032, 4096, 0},
                                                           {1, 4096, 1024, 0},
                                                           {520, 72, 2056, 8},
                                                           {1, 1, 1, 0},
                                                           {17, 33, 65, 0},
                                                           {127, 129, 131, 3},
                                                           {301, 515, 1025, 0},
                                                           {513, 258, 132, 2},
                                                           {2304, 2560, 2112, 0}}) {
            Problem p = make_problem(s[0], s[1], s[2], layout, turn % 3 != 2, 1, s[3]);
            if (turn % 4 == 1)
                p.alpha = -0.625f, p.beta = 0.75f;
            if (turn % 4 == 3)
                p.beta = 1;
            all.push_back(p);
            ++turn;
        }
        all.push_back(make_problem(136, 72, 200, layout, turn++ % 2, 5));
        all.push_back(make_problem(32, 32, 32, layout, turn++ % 2, 37));
        all.push_back(make_problem(128, 128, 128, layout, turn++ % 2, 9));
        all.push_back(make_problem(33, 47, 51, layout, turn++ % 2, 7));
    }
    return all;
}

int verify(const Options &o, uint64_t seed) {
    int wrong = 0;
    std::vector<Problem> grid;
    if (o.shapes.empty())
        grid = verification_grid();
    else
        for (const std::string &shape : split(o.shapes, ','))
            for (const std::string &layout : split(o.layouts, ','))
                for (const std::string &dtype : split(o.dtypes, ','))
                    grid.push_back(shaped(shape, layout, dtype == "bf16"));
    for (const Candidate &candidate : candidates()) {
        if (!chosen(o, candidate.name))
            continue;
        int right = 0, refused = 0;
        double rms = 0;
        for (const Problem &p : grid)
            for (int shift : {0, 1}) {
                // `supports` sees pitches: a pointer off its alignment comes with rows that are
                // too.
                if (!candidate.supports(p) ||
                    (shift && (p.aligned_c() || (p.aligned_a() && p.aligned_b()))))
                    continue;
                const Verdict v = judge(candidate, p, seed, shift);
                rms = std::max(rms, v.error.ideal > 0 ? v.error.rms / v.error.ideal : 0);
                ++(v.right ? right : refused);
                if (!v.right && refused <= 4)
                    printf("%s on %s%s: %s\n", candidate.name.c_str(), describe(p).c_str(),
                           shift ? " shifted" : "", v.reason.c_str());
                if (v.reason.rfind("CUDA", 0) == 0)
                    exit(3); // the context is gone
            }
        printf("verify %-44s %3d right %3d refused, error at most %.3f of one rounding\n",
               candidate.name.c_str(), right, refused, rms);
        fflush(stdout);
        wrong += refused;
    }
    return wrong ? 1 : 0;
}

const char *const SHAPES =
    "512x512x512,1024x1024x1024,2048x2048x2048,4096x4096x4096,8192x8192x8192,16384x16384x16384,"
    "128x4096x4096,64x11008x4096,16x4096x4096,1x4096x4096,8192x128x8192,4096x4096x64,8192x8192x512,"
    "4097x4095x4099,1000x1000x1000,511x513x1025,2048x11008x4096,4096x1280x8192,100352x64x576,"
    "12544x512x4608,256x128x128x128,4096x32x32x32";

bool known(const std::string &file, const std::string &key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.find(key) != std::string::npos)
            return true;
    return false;
}

int time_rows(const Options &o, uint64_t seed) {
    const std::string missing = lt::load();
    if (!missing.empty()) {
        fprintf(stderr, "%s\n", missing.c_str());
        return 2;
    }
    printf("%-20s %-5s %5s %9s %9s %9s %9s %7s %7s %6s %6s  %s\n", "shape", "", "", "Lt top-1",
           "Lt best", "Lt pad", "ours", "/best", "/pad", "MHz", "W", "arms");
    for (const std::string &shape : split(o.shapes.empty() ? SHAPES : o.shapes, ','))
        for (const std::string &layout : split(o.layouts, ','))
            for (const std::string &dtype : split(o.dtypes, ',')) {
                const Problem p = shaped(shape, layout, dtype == "bf16");
                const std::string key = "\"shape\": \"" + shape + "\", \"layout\": \"" + layout +
                                        "\", \"dtype\": \"" + dtype + "\"";
                if (!o.out.empty() && known(o.out, key))
                    continue;
                alarm(200); // A kernel that hangs takes the process with it; the row stays open.
                std::vector<Candidate> arms = lt::algorithms(p);
                const size_t answers = arms.size();
                if (arms.empty())
                    continue;
                for (Candidate &c : lt::padded(p))
                    arms.push_back(c);
                for (const Candidate &c : candidates())
                    if (chosen(o, c.name) && c.supports(p))
                        arms.push_back(c);
                Candidate again = arms[0];
                again.name = "again#0";
                arms.push_back(again);
                const Measured m =
                    measure(p, arms, o.rounds, o.screen, {"cublaslt#0", "again#0"}, seed);
                const Arm *top = nullptr, *best = nullptr, *pad = nullptr, *hand = nullptr,
                          *one = nullptr, *product = nullptr, *noise = nullptr;
                auto better = [](const Arm *&held, const Arm &arm) {
                    if (!held || arm.median() < held->median())
                        held = &arm;
                };
                std::string names;
                char text[400];
                for (const Arm &arm : m.arms) {
                    const std::string &name = arm.candidate.name;
                    const bool baseline = name.rfind("cublaslt#", 0) == 0;
                    const bool copies = name.rfind("pad+", 0) == 0;
                    const bool right = arm.refused.empty();
                    if (name == "cublaslt#0")
                        top = &arm;
                    if (name == "again#0")
                        noise = &arm;
                    else if (baseline) // a baseline's precision is recorded, not refused
                        better(best, arm);
                    else if (copies)
                        better(pad, arm);
                    else if (name == "product")
                        product = right ? &arm : nullptr;
                    else if (right)
                        better(name.rfind("one:", 0) == 0 ? one : hand, arm);
                    snprintf(text, sizeof text,
                             "%s{\"name\": \"%s\", \"us\": %.4g, \"q1\": %.4g, \"q3\": %.4g, "
                             "\"refused\": \"%s\"}",
                             names.empty() ? "" : ", ", name.c_str(), arm.median(),
                             arm.quartile(0.25), arm.quartile(0.75), arm.refused.c_str());
                    names += text;
                    if (!arm.refused.empty())
                        fprintf(stderr, "%s %s %s: refused: %s\n", shape.c_str(), layout.c_str(),
                                name.c_str(), arm.refused.c_str());
                }
                if (!top || !best)
                    continue;
                const bool finished = chosen(o, "product") && finished::chosen;
                const Arm *ours = finished ? product : hand;
                const Ratio by_best = ours ? ratio(*best, *ours) : Ratio{},
                            by_top = ours ? ratio(*top, *ours) : Ratio{},
                            by_pad = ours && pad ? ratio(*pad, *ours) : Ratio{},
                            by_one = ours && one ? ratio(*one, *ours) : Ratio{},
                            by_hand = ours && hand ? ratio(*hand, *ours) : Ratio{},
                            by_self = noise ? ratio(*top, *noise) : Ratio{};
                printf(
                    "%-20s %-2s %-4s %5s %9.2f %9.2f %9.2f %9.2f %7.3f %7.3f %6.0f %6.0f  %s %s\n",
                    shape.c_str(), layout.c_str(), dtype.c_str(), "", top->median(), best->median(),
                    pad ? pad->median() : 0, ours ? ours->median() : 0, by_best.median,
                    by_pad.median, m.mhz, m.watts, best->candidate.name.c_str(),
                    ours ? ours->candidate.name.c_str() : "-");
                fflush(stdout);
                if (o.out.empty())
                    continue;
                char date[32];
                const time_t now = ::time(nullptr);
                strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
                std::ofstream file(o.out, std::ios::app);
                snprintf(text, sizeof text,
                         ", \"rounds\": %d, \"sets\": %d, \"launches\": %d, \"mhz\": %.0f, "
                         "\"watts\": %.0f, \"celsius\": %.0f, \"lt_version\": %zu, \"lt_answers\": "
                         "%zu, ",
                         o.rounds, m.sets, m.launches, m.mhz, m.watts, m.celsius, lt::version(),
                         answers);
                file << "{" << key << ", \"date\": \"" << date << "\", " << device_json() << text;
                auto member = [&](const char *name, const Arm *arm, const Ratio &r) {
                    snprintf(text, sizeof text,
                             "\"%s\": \"%s\", \"%s_us\": %.5g, \"%s_ratio\": [%.4f, %.4f, %.4f], ",
                             name, arm ? arm->candidate.name.c_str() : "", name,
                             arm ? arm->median() : 0, name, r.median, r.low, r.high);
                    file << text;
                };
                member("ours", ours, {1, 1, 1});
                if (finished) {
                    file << "\"chosen\": \"" << finished::chosen(p) << "\", ";
                    member("one", one, by_one), member("hand", hand, by_hand);
                }
                member("best", best, by_best), member("top1", top, by_top);
                member("pad", pad, by_pad), member("noise", noise, by_self);
                file << "\"arms\": [" << names << "]}\n";
            }
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const Options o = parse(argc, argv);
    if (o.command == "list") {
        for (const Candidate &c : candidates())
            printf("%s\n", c.name.c_str());
        return 0;
    }
    if (o.command != "controls" && o.command != "verify" && o.command != "time") {
        fprintf(stderr, "usage: bench controls | verify | time | list  (docs/cuda.md)\n");
        return 2;
    }
    std::random_device secret;
    const uint64_t seed = uint64_t(secret()) << 32 | secret();
    printf("{%s}, seed %llu\n", device_json().c_str(), static_cast<unsigned long long>(seed));
    if (o.controls || o.command == "controls")
        run_controls(seed, o.command == "controls");
    if (o.command == "verify")
        return verify(o, seed);
    return o.command == "time" ? time_rows(o, seed) : 0;
}
