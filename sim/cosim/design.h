// What drive.cpp asks of a design, so that it is compiled once for all of them; design.cpp answers for each.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

class VerilatedContext;

struct Pins {
    uint8_t *data, *valid, *ready, *last;
};

class Design {
public:
    virtual ~Design() = default;
    virtual std::vector<Pins> sources() = 0;
    virtual std::vector<Pins> sinks() = 0;
    virtual void clock(bool level) = 0;
    virtual void reset(bool level) = 0;
    virtual void idle() = 0;                        // Inputs of the configuration port.
    virtual bool flags_right(bool misplaced) = 0;   // Whether flags say what came: some tlast misplaced or none.
    virtual void see(int64_t counts[2]) = 0;        // Adds to what protected memories corrected and left wrong.
    virtual void open_waves() = 0;
    virtual void show(int64_t time) = 0;
    virtual void end() = 0;
};

std::unique_ptr<Design> design(VerilatedContext& context);
