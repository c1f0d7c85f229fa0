#include "measure.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <dlfcn.h>
#include <map>
#include <memory>

namespace {

constexpr double BEYOND_L2 = 180e6;    // bytes of all sets together
constexpr double GRAPH_SECONDS = 2e-3; // a graph is at least this long
constexpr double HEAT_SECONDS = 0.4, HEAT_FLOP = 1e10;

double at(std::vector<double> v, double q) {
    if (v.empty())
        return 0;
    std::sort(v.begin(), v.end());
    const double i = q * (v.size() - 1);
    const size_t low = static_cast<size_t>(i), high = std::min(low + 1, v.size() - 1);
    return v[low] + (i - low) * (v[high] - v[low]);
}

// Clock, power and temperature by NVML, which every driver brings.
struct Board {
    void *device = nullptr;
    int (*clock)(void *, int, unsigned *) = nullptr;
    int (*power)(void *, unsigned *) = nullptr;
    int (*temperature)(void *, int, unsigned *) = nullptr;
    std::string driver = "unknown";
    std::vector<double> mhz, watts, celsius;

    Board() {
        void *so = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        if (!so)
            return;
        auto init = reinterpret_cast<int (*)()>(dlsym(so, "nvmlInit_v2"));
        auto get = reinterpret_cast<int (*)(const char *, void **)>(
            dlsym(so, "nvmlDeviceGetHandleByPciBusId_v2"));
        auto version =
            reinterpret_cast<int (*)(char *, unsigned)>(dlsym(so, "nvmlSystemGetDriverVersion"));
        clock = reinterpret_cast<decltype(clock)>(dlsym(so, "nvmlDeviceGetClockInfo"));
        power = reinterpret_cast<decltype(power)>(dlsym(so, "nvmlDeviceGetPowerUsage"));
        temperature =
            reinterpret_cast<decltype(temperature)>(dlsym(so, "nvmlDeviceGetTemperature"));
        char bus[32], text[96];
        if (!init || !get || init() || cudaDeviceGetPCIBusId(bus, sizeof bus, 0) ||
            get(bus, &device))
            device = nullptr;
        if (device && version && !version(text, sizeof text))
            driver = text;
    }
    void sample() {
        unsigned v;
        if (!device)
            return;
        if (!clock(device, 1, &v)) // the SM's
            mhz.push_back(v);
        if (!power(device, &v))
            watts.push_back(v / 1000.0);
        if (!temperature(device, 0, &v))
            celsius.push_back(v);
    }
};

Board &board() {
    static Board b;
    return b;
}

// One set more of C than of A and B: a C is never where the same product was left the last time,
// so that a kernel gains nothing by finding its result there, and what it leaves shows it.
struct Sets {
    Problem p;
    int inputs;
    std::vector<std::unique_ptr<Guarded>> a, b, c;
    Guarded workspace;

    Sets(const Problem &problem, size_t workspace_bytes, uint64_t seed)
        : p(problem), workspace(workspace_bytes + 256) {
        const double one = 2.0 * (p.a_elements() + p.b_elements() + p.c_elements());
        inputs = std::max(2, static_cast<int>(std::ceil(BEYOND_L2 / one)));
        inputs += inputs % 2;
        for (int i = 0; i <= inputs; ++i) {
            c.push_back(std::make_unique<Guarded>(p.c_elements() * 2));
            if (i == inputs)
                break;
            a.push_back(std::make_unique<Guarded>(p.a_elements() * 2));
            b.push_back(std::make_unique<Guarded>(p.b_elements() * 2));
            oracle::fill_normal(a[i]->get(), p.a_elements(), seed + 2 * i, p.bf16);
            oracle::fill_normal(b[i]->get(), p.b_elements(), seed + 2 * i + 1, p.bf16);
        }
    }
    Operands at(int launch) const {
        return {a[launch % inputs]->get(), b[launch % inputs]->get(),
                c[launch % (inputs + 1)]->get(), workspace.get()};
    }
};

struct Graph {
    cudaGraphExec_t exec = nullptr;
    int launches = 0;
    cudaError_t status = cudaSuccess;

    Graph(const Candidate &candidate, const Sets &sets, int count, cudaStream_t stream)
        : launches(count) {
        cudaGraph_t graph = nullptr;
        status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
        for (int i = 0; i < count && status == cudaSuccess; ++i)
            status = candidate.launch(sets.p, sets.at(i), stream);
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        if (status == cudaSuccess)
            status = ended;
        if (status == cudaSuccess)
            status = cudaGraphInstantiate(&exec, graph, 0);
        if (graph)
            CHECK(cudaGraphDestroy(graph));
        cudaGetLastError();
    }
    Graph(const Graph &) = delete;
    ~Graph() {
        if (exec)
            CHECK(cudaGraphExecDestroy(exec));
    }
};

double seconds() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

class Clock {
  public:
    Clock() {
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&begin_));
        CHECK(cudaEventCreate(&end_));
    }
    double microseconds(const Graph &graph, bool sample = false) {
        CHECK(cudaEventRecord(begin_, stream));
        CHECK(cudaGraphLaunch(graph.exec, stream));
        CHECK(cudaEventRecord(end_, stream));
        if (sample)
            board().sample();
        CHECK(cudaEventSynchronize(end_));
        float ms;
        CHECK(cudaEventElapsedTime(&ms, begin_, end_));
        return ms * 1000.0 / graph.launches;
    }
    cudaStream_t stream;

  private:
    cudaEvent_t begin_, end_;
};

std::string family(const std::string &name) { return name.substr(0, name.find_first_of("#:")); }

// What the arm's own graph leaves after poison: two of the C's, judged whole.
std::string judged(const Graph &graph, const Sets &sets, Clock &clock, uint64_t seed) {
    for (const auto &c : sets.c)
        oracle::fill_bytes(c->get(), c->bytes(), 0xff);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 2; ++i)
        clock.microseconds(graph);
    for (int trial = 0; trial < 2; ++trial) {
        const int which = static_cast<int>((seed / 7 + trial * (sets.inputs / 2)) % sets.c.size());
        int last = graph.launches - 1;
        while (last % (sets.inputs + 1) != which)
            --last;
        const Operands o = sets.at(last);
        const oracle::Error error = oracle::judge(sets.p, static_cast<const uint16_t *>(o.a),
                                                  static_cast<const uint16_t *>(o.b), nullptr,
                                                  static_cast<const uint16_t *>(o.c), seed + trial);
        if (!error.refused.empty())
            return error.refused;
        if (!sets.c[which]->intact() || !sets.workspace.intact())
            return "wrote outside a buffer";
    }
    return "";
}

} // namespace

double Arm::median() const { return at(microseconds, 0.5); }
double Arm::quartile(double q) const { return at(microseconds, q); }

Ratio ratio(const Arm &a, const Arm &b) {
    std::vector<double> r;
    for (size_t i = 0; i < std::min(a.microseconds.size(), b.microseconds.size()); ++i)
        r.push_back(a.microseconds[i] / b.microseconds[i]);
    return {at(r, 0.5), at(r, 0), at(r, 1)};
}

Measured measure(const Problem &p, std::vector<Candidate> candidates, int rounds, int screen,
                 const std::vector<std::string> &keep, uint64_t seed) {
    static Clock clock;
    Measured m;
    size_t workspace = 0;
    for (const Candidate &c : candidates)
        workspace = std::max(workspace, c.workspace(p));
    const Sets sets(p, workspace, seed);
    CHECK(cudaDeviceSynchronize());
    m.sets = sets.inputs;
    const int turn = 2 * (sets.inputs + 1); // after an even number of turns no C repeats its input
    std::vector<std::unique_ptr<Graph>> graphs;
    double fastest = 1e9;
    for (Candidate &c : candidates) {
        auto graph = std::make_unique<Graph>(c, sets, turn, clock.stream);
        if (graph->status != cudaSuccess) {
            if (c.name.find("cublaslt") == std::string::npos)
                fprintf(stderr, "%s: not captured: %s\n", c.name.c_str(),
                        cudaGetErrorString(graph->status));
            continue;
        }
        clock.microseconds(*graph);
        fastest = std::min(fastest, clock.microseconds(*graph));
        graphs.push_back(std::move(graph));
        m.arms.push_back({c, {}, ""});
    }
    if (screen > 0) {
        std::vector<double> least(m.arms.size(), 1e30);
        for (int round = 0; round < 3; ++round)
            for (size_t i = 0; i < m.arms.size(); ++i)
                least[i] = std::min(least[i], clock.microseconds(*graphs[i]));
        std::map<std::string, std::vector<size_t>> families;
        for (size_t i = 0; i < m.arms.size(); ++i)
            families[family(m.arms[i].candidate.name)].push_back(i);
        std::vector<bool> stays(m.arms.size());
        for (auto &[name, members] : families) {
            std::sort(members.begin(), members.end(),
                      [&](size_t x, size_t y) { return least[x] < least[y]; });
            for (size_t i = 0; i < members.size(); ++i)
                stays[members[i]] =
                    i < static_cast<size_t>(screen) ||
                    std::count(keep.begin(), keep.end(), m.arms[members[i]].candidate.name);
            if (getenv("SCREENED"))
                for (size_t i : members)
                    fprintf(stderr, "  screened %-40s %.2f us\n", m.arms[i].candidate.name.c_str(),
                            least[i]);
        }
        std::vector<Arm> arms;
        for (size_t i = 0; i < m.arms.size(); ++i)
            if (stays[i])
                arms.push_back(m.arms[i]);
        m.arms = arms;
    }
    int turns = static_cast<int>(std::ceil(GRAPH_SECONDS * 1e6 / (fastest * turn)));
    turns = std::max(1, turns);
    m.launches = turns * turn;
    graphs.clear();
    for (const Arm &arm : m.arms)
        graphs.push_back(std::make_unique<Graph>(arm.candidate, sets, m.launches, clock.stream));
    for (size_t i = 0; i < m.arms.size(); ++i) {
        CHECK(graphs[i]->status);
        m.arms[i].refused = judged(*graphs[i], sets, clock, seed + i);
    }
    const double heat = p.flop() > HEAT_FLOP ? HEAT_SECONDS : HEAT_SECONDS / 8;
    for (const double begin = seconds(); seconds() < begin + heat;)
        for (const auto &graph : graphs)
            clock.microseconds(*graph);
    board().mhz.clear(), board().watts.clear(), board().celsius.clear();
    for (int round = 0; round < rounds; ++round)
        for (size_t i = 0; i < graphs.size(); ++i) {
            const size_t j = round % 2 ? graphs.size() - 1 - i : i;
            m.arms[j].microseconds.push_back(
                clock.microseconds(*graphs[j], i == graphs.size() / 2));
        }
    m.mhz = at(board().mhz, 0.5), m.watts = at(board().watts, 0.5);
    m.celsius = at(board().celsius, 0.5);
    return m;
}

std::string device_json() {
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    char text[400];
    snprintf(text, sizeof text,
             "\"device\": \"%s\", \"sms\": %d, \"driver\": \"%s\", \"nvcc\": \"%d.%d.%d\"",
             properties.name, properties.multiProcessorCount, board().driver.c_str(),
             __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, __CUDACC_VER_BUILD__);
    return text;
}
