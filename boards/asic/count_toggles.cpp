// Plays beats back to back into a netlist, and counts for each net how often it differs from the cycle before.
// Zero delay: what a net does within a cycle is not seen.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>
#include "Vcounted.h"
#include "verilated.h"

template <class T> std::enable_if_t<std::is_integral_v<T>> set(T& port, const std::vector<uint32_t>& words) {
    uint64_t value = words[0];
    if (words.size() > 1) value |= uint64_t(words[1]) << 32;
    port = T(value);
}
template <std::size_t N> void set(VlWide<N>& port, const std::vector<uint32_t>& words) {
    for (std::size_t i = 0; i < N; ++i) port[i] = i < words.size() ? words[i] : 0;
}
template <class T> std::enable_if_t<std::is_integral_v<T>, uint32_t> word(const T& port, std::size_t i) {
    return uint32_t(uint64_t(port) >> (32 * i));
}
template <std::size_t N> uint32_t word(const VlWide<N>& port, std::size_t i) { return port[i]; }

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    const std::size_t nets = std::strtoul(argv[1], nullptr, 10), gates = std::strtoul(argv[2], nullptr, 10);
    const std::size_t due = std::strtoul(argv[3], nullptr, 10), bytes = std::strtoul(argv[4], nullptr, 10);
    std::ifstream beats("beats.txt");
    std::vector<std::pair<bool, std::vector<uint32_t>>> queue;
    for (std::string line; std::getline(beats, line);) {  // The mark of a last beat, then its data from the top.
        std::vector<uint32_t> words;
        for (std::size_t end = line.size(); end > 1; end = end > 8 ? end - 8 : 1) {
            const std::size_t begin = end > 9 ? end - 8 : 1;
            words.push_back(uint32_t(std::stoul(line.substr(begin, end - begin), nullptr, 16)));
            if (begin == 1) break;
        }
        queue.emplace_back(line[0] == '1', words);
    }
    Vcounted top;
    auto tick = [&] { top.clk = 0; top.eval(); top.clk = 1; top.eval(); };
    top.rst = 1;
    top.s_axis_tvalid = 0;
    top.m_axis_tready = 1;
    for (int i = 0; i < 4; ++i) tick();
    top.rst = 0;
    std::vector<uint32_t> before((nets + 31) / 32), toggles(nets), pulses(gates);
    std::FILE* out = std::fopen("outputs.txt", "w");
    std::size_t at = 0, got = 0, cycles = 0, idle = 0;
    for (std::size_t i = 0; i < before.size(); ++i) before[i] = word(top.nets, i);
    while (got < due && idle < 200000) {
        top.clk = 0;
        top.s_axis_tvalid = at < queue.size();
        if (at < queue.size()) {
            set(top.s_axis_tdata, queue[at].second);
            top.s_axis_tlast = queue[at].first;
        }
        top.eval();
        const bool taken = top.s_axis_tvalid && top.s_axis_tready;
        if (top.m_axis_tvalid) {
            for (std::size_t i = bytes; i-- > 0;)
                std::fprintf(out, "%02x", (word(top.m_axis_tdata, i / 4) >> (8 * (i % 4))) & 255);
            std::fputc('\n', out);
            ++got;
            idle = 0;
        } else {
            ++idle;
        }
        top.clk = 1;
        top.eval();
        at += taken;
        ++cycles;
        for (std::size_t i = 0; i < before.size(); ++i) {
            const uint32_t now = word(top.nets, i);
            for (uint32_t changed = now ^ before[i]; changed; changed &= changed - 1)
                ++toggles[32 * i + __builtin_ctz(changed)];
            before[i] = now;
        }
        for (std::size_t i = 0; i < (gates + 31) / 32; ++i)
            for (uint32_t high = word(top.gates, i); high; high &= high - 1) ++pulses[32 * i + __builtin_ctz(high)];
    }
    std::fclose(out);
    std::FILE* counts = std::fopen("counts.txt", "w");
    std::fprintf(counts, "%zu %zu\n", cycles, got);
    for (uint32_t count : toggles) std::fprintf(counts, "%u\n", count);
    for (uint32_t count : pulses) std::fprintf(counts, "%u\n", count);
    std::fclose(counts);
    return got < due;
}
