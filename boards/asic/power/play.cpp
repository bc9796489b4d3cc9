// Plays beats back to back into a netlist of tables, and counts for each net how often its settled value differs from
// that of the cycle before. Zero delay: what a net does within a cycle is not seen.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using Nets = std::vector<uint32_t>;

struct Function {
    uint32_t inputs = 0;
    std::string values;
};
struct Cell {  // A gate, the enable of a clock gate, or the next state of a flip-flop.
    uint32_t function = 0, clock = 0, out = 0;
    Nets in;
};
struct Memory {
    uint32_t width = 0, reads = 0, writes = 0, address = 0;
    std::string clocked, transparent;
    Nets read_enable, read_address, read_data, write_enable, write_address, write_data;
    std::vector<std::vector<uint8_t>> words;
};

static Nets nets(std::istream& from) {
    std::size_t count;
    from >> count;
    Nets found(count);
    for (auto& net : found) from >> net;
    return found;
}

static std::vector<Cell> cells(std::istream& from) {
    std::size_t count;
    from >> count;
    std::vector<Cell> found(count);
    for (auto& cell : found) {
        from >> cell.function >> cell.clock >> cell.out;
        cell.in = nets(from);
    }
    return found;
}

struct Netlist {
    std::vector<uint8_t> value;
    std::vector<Function> functions;
    std::vector<Cell> gates, clocks, flops;
    std::vector<Memory> memories;
    std::map<std::string, Nets> ports;
    std::vector<uint8_t> pulse;  // Of the clock, then of each gated one.

    explicit Netlist(std::istream& from) {
        std::size_t count;
        from >> count;
        value.assign(count, 0);
        value[1] = 1;
        from >> count;
        functions.resize(count);
        for (auto& each : functions) from >> each.inputs >> each.values;
        gates = cells(from);
        clocks = cells(from);
        flops = cells(from);
        from >> count;
        memories.resize(count);
        for (auto& each : memories) {
            std::size_t depth;
            from >> depth >> each.width >> each.reads >> each.writes >> each.address >> each.clocked >> each.transparent;
            for (Nets* of : {&each.read_enable, &each.read_address, &each.read_data, &each.write_enable,
                             &each.write_address, &each.write_data})
                *of = nets(from);
            each.words.assign(depth, std::vector<uint8_t>(each.width));
            std::string contents;  // A dash for any.
            from >> contents;
            for (std::size_t i = 0; i < depth * each.width && contents != "-"; ++i)
                each.words[i / each.width][i % each.width] = contents.at(i) == '1';
        }
        from >> count;
        for (std::string name; count--;) {
            from >> name;
            ports[name] = nets(from);
        }
        pulse.assign(clocks.size() + 1, 1);
        uint32_t seed = 1;  // States begin with any value, as in a circuit.
        for (const auto& flop : flops) value[flop.out] = (seed = seed * 1664525 + 1013904223) >> 31;
        order();
    }

    void order() {  // Gates behind what drives them.
        std::vector<int64_t> driver(value.size(), -1);
        for (std::size_t i = 0; i < gates.size(); ++i) driver[gates[i].out] = int64_t(i);
        std::vector<Nets> readers(gates.size());
        Nets missing(gates.size()), ready;
        for (std::size_t i = 0; i < gates.size(); ++i) {
            for (uint32_t net : gates[i].in)
                if (driver[net] >= 0) readers[std::size_t(driver[net])].push_back(uint32_t(i)), ++missing[i];
            if (!missing[i]) ready.push_back(uint32_t(i));
        }
        for (std::size_t at = 0; at < ready.size(); ++at)
            for (uint32_t next : readers[ready[at]])
                if (!--missing[next]) ready.push_back(next);
        if (ready.size() != gates.size()) {
            std::cerr << gates.size() - ready.size() << " gates are in loops\n";
            std::exit(2);
        }
        std::vector<Cell> sorted;
        sorted.reserve(gates.size());
        for (uint32_t i : ready) sorted.push_back(std::move(gates[i]));
        gates = std::move(sorted);
    }

    uint8_t of(const Cell& cell) const {
        std::size_t index = 0;
        for (std::size_t i = 0; i < cell.in.size(); ++i) index |= std::size_t(value[cell.in[i]]) << i;
        return uint8_t(functions[cell.function].values[index] - '0');
    }

    std::size_t number(const Nets& bits, std::size_t begin, std::size_t count) const {
        std::size_t found = 0;
        for (std::size_t i = 0; i < count; ++i) found |= std::size_t(value[bits[begin + i]]) << i;
        return found;
    }

    void settle() {
        for (const auto& gate : gates) value[gate.out] = of(gate);
    }

    void edge() {  // All that a rising edge takes is what was there before it.
        for (std::size_t i = 0; i < clocks.size(); ++i) pulse[i + 1] = pulse[clocks[i].clock] & of(clocks[i]);
        std::vector<std::pair<uint32_t, uint8_t>> next;
        next.reserve(flops.size());
        for (const auto& flop : flops)
            if (pulse[flop.clock]) next.emplace_back(flop.out, of(flop));
        for (auto& memory : memories) step(memory, next);
        for (const auto& [net, bit] : next) value[net] = bit;
    }

    void step(Memory& memory, std::vector<std::pair<uint32_t, uint8_t>>& next) {
        const std::size_t width = memory.width;
        for (std::size_t read = 0; read < memory.reads; ++read) {
            if (!value[memory.read_enable[read]]) continue;
            const std::size_t at = number(memory.read_address, read * memory.address, memory.address);
            for (std::size_t bit = 0; bit < width; ++bit) {
                uint8_t seen = at < memory.words.size() ? memory.words[at][bit] : 0;
                for (std::size_t write = 0; write < memory.writes; ++write)
                    if (memory.transparent[read * memory.writes + write] == '1' &&
                        value[memory.write_enable[write * width + bit]] &&
                        number(memory.write_address, write * memory.address, memory.address) == at)
                        seen = value[memory.write_data[write * width + bit]];
                next.emplace_back(memory.read_data[read * width + bit], seen);
            }
        }
        for (std::size_t write = 0; write < memory.writes; ++write) {
            const std::size_t at = number(memory.write_address, write * memory.address, memory.address);
            for (std::size_t bit = 0; bit < width && at < memory.words.size(); ++bit)
                if (value[memory.write_enable[write * width + bit]])
                    memory.words[at][bit] = value[memory.write_data[write * width + bit]];
        }
    }

    void drive(const std::string& port, const std::string& bits) {  // The lowest bit first; zeros above.
        const Nets& to = ports[port];
        for (std::size_t i = 0; i < to.size(); ++i) value[to[i]] = i < bits.size() && bits[i] == '1';
    }
    bool is(const std::string& port) { return value[ports[port].at(0)]; }
};

int main(int, char** argv) {
    std::ifstream given("netlist.txt"), beats("beats.txt");
    Netlist netlist(given);
    const std::size_t due = std::strtoul(argv[1], nullptr, 10), patience = 200000;
    const std::size_t settling = 512, pause = 512;  // Cycles without input, in which the circuit comes to rest, and rests.
    std::vector<std::string> queue;  // The mark of a last beat, then its bits, the lowest first.
    for (std::string line; std::getline(beats, line);) queue.push_back(line);
    netlist.drive("rst", "1");
    netlist.drive("s_axis_tvalid", "0");
    netlist.drive("m_axis_tready", "1");
    for (int i = 0; i < 4; ++i) netlist.settle(), netlist.edge();
    netlist.drive("rst", "0");
    struct Counts {
        std::vector<uint32_t> toggles, pulses;
    };
    std::vector<Counts> all(2, {std::vector<uint32_t>(netlist.value.size()),
                                std::vector<uint32_t>(netlist.clocks.size())});
    std::vector<uint8_t> before;
    const auto count = [&](Counts& to) {
        if (before.empty()) before = netlist.value;
        for (std::size_t i = 0; i < before.size(); ++i) to.toggles[i] += before[i] ^ netlist.value[i];
        before = netlist.value;
    };
    const auto rise = [&](Counts& to) {
        netlist.edge();
        for (std::size_t i = 0; i < to.pulses.size(); ++i) to.pulses[i] += netlist.pulse[i + 1];
    };
    std::ofstream out("outputs.txt");
    std::size_t at = 0, got = 0, cycles = 0, idle = 0;
    while (got < due && idle < patience) {
        const bool some = at < queue.size();
        netlist.drive("s_axis_tvalid", some ? "1" : "0");
        if (some) {
            netlist.drive("s_axis_tdata", queue[at].substr(1));
            netlist.drive("s_axis_tlast", queue[at].substr(0, 1));
        }
        netlist.settle();
        count(all[0]);
        ++idle;
        if (netlist.is("m_axis_tvalid")) {
            for (uint32_t net : netlist.ports["m_axis_tdata"]) out << char('0' + netlist.value[net]);
            out << '\n';
            ++got, idle = 0;
        }
        at += some && netlist.is("s_axis_tready");
        rise(all[0]);
        ++cycles;
    }
    netlist.drive("s_axis_tvalid", "0");
    for (std::size_t i = 0; i < settling; ++i) netlist.settle(), netlist.edge();
    before.clear();
    for (std::size_t i = 0; i < pause; ++i) netlist.settle(), count(all[1]), rise(all[1]);
    std::ofstream counts("counts.txt");
    for (const auto& each : all) {
        counts << (&each == &all[0] ? cycles : pause) << '\n';
        for (uint32_t number : each.toggles) counts << number << '\n';
        for (uint32_t number : each.pulses) counts << number << '\n';
    }
    return got < due ? 3 : 0;
}
