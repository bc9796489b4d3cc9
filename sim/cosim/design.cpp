// The answers of a design to drive.cpp.
#include <cstdint>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "design.h"
#include "ports.h"  // CLOCK, RESET, SOURCES(X), SINKS(X), IDLE, FLAGS_RIGHT(misplaced) and SEEN(counts) of the design
#include "verilated.h"
#include "waves.h"

// Pins of a port of the model ``top`` by its prefix, for SOURCES and SINKS.
#define PINS(prefix) Pins{reinterpret_cast<uint8_t*>(&top->prefix##_tdata), &top->prefix##_tvalid, \
                          &top->prefix##_tready, &top->prefix##_tlast},

namespace {

class Compiled : public Design {
    VerilatedContext& context;
    std::unique_ptr<Vtop> top;
    Waves waves;

public:
    explicit Compiled(VerilatedContext& context) : context(context), top(std::make_unique<Vtop>(&context)) {}

    std::vector<Pins> sources() override { return {SOURCES(PINS)}; }

    std::vector<Pins> sinks() override { return {SINKS(PINS)}; }

    void clock(bool level) override {
        top->CLOCK = level;
        top->eval();
    }

    void reset(bool level) override { top->RESET = level; }

    void idle() override { IDLE; }

    bool flags_right(bool misplaced) override { return FLAGS_RIGHT(misplaced); }

    void see(int64_t counts[2]) override { SEEN(counts); }

    void open_waves() override { waves.open(context, *top); }

    void show(int64_t time) override { waves.show(time); }

    void end() override {
        top->final();
        waves.close();
    }
};

}  // namespace

std::unique_ptr<Design> design(VerilatedContext& context) { return std::make_unique<Compiled>(context); }
