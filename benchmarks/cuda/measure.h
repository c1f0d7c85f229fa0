// The clock: arms of one problem, interleaved in one process, on rotating buffers.
#pragma once
#include "judge.h"

struct Arm {
    Candidate candidate;
    std::vector<double> microseconds; // of one launch, by round
    std::string refused;              // why its results were refused, or empty
    double median() const;
    double quartile(double q) const;
};

struct Measured {
    std::vector<Arm> arms;
    int sets = 0, launches = 0;             // sets of operands, launches a graph
    double mhz = 0, watts = 0, celsius = 0; // medians over the rounds
};

// Runs `rounds` rounds of every arm, their order reversed every other round, and judges what each
// left. With `screen` > 0 all arms first get two short rounds, and those of `keep` names and the
// `screen` fastest of each prefix up to '#' or ':' stay.
Measured measure(const Problem &problem, std::vector<Candidate> candidates, int rounds, int screen,
                 const std::vector<std::string> &keep, uint64_t seed);

// The median over rounds of a's time by b's, and its extremes.
struct Ratio {
    double median, low, high;
};
Ratio ratio(const Arm &a, const Arm &b);

std::string device_json(); // device, driver and CUDA as members of a JSON object
