// All signals over time, of a model that is compiled with them; of others nothing.
#pragma once
#include <cstdint>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#elif VM_TRACE
#include "verilated_vcd_c.h"
#endif

class Waves {
#if VM_TRACE
#if VM_TRACE_FST
    VerilatedFstC file;
    static constexpr const char* NAME = "dump.fst";
#else
    VerilatedVcdC file;
    static constexpr const char* NAME = "dump.vcd";
#endif

public:
    void open(VerilatedContext& context, Vtop& top) {
        context.traceEverOn(true);
        top.trace(&file, 99);
        file.open(NAME);
    }

    void show(int64_t time) {
        if (file.isOpen()) file.dump(static_cast<uint64_t>(time));
    }

    void close() { file.close(); }
#else

public:
    void open(VerilatedContext&, Vtop&) {}

    void show(int64_t) {}

    void close() {}
#endif
};
