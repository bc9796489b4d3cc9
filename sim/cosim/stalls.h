// When sources offer beats and sinks take some: always, each at random, or sinks that wait until the circuit is full.
#pragma once
#include <cstdint>
#include <vector>

class Stalls {
    static constexpr int64_t LONGEST_STOP = 8192;
    int64_t patience = 0;
    uint64_t random = 0;    // 0 for none.
    size_t sources = 1;     // Sides 0 to here are sources, those behind them sinks.
    std::vector<int64_t> spell;  // Decisions of each side for which its odds stay as they are.
    std::vector<uint64_t> odds;  // Of 256, that a beat is offered, or taken.
    int64_t full = 0;     // Cycles without an accepted beat, or with all of them sent, after which some are taken; 0: none.
    int64_t refused = 0;  // Such cycles until now.
    int64_t fills = 0;    // How often it was full.
    int64_t opens = 0;    // Beats that are still taken before the circuit is filled again.

    uint64_t draw() {  // xorshift64*, Vigna 2016.
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        return random * 0x2545F4914F6CDD1DULL >> 32;
    }

public:
    // Parameters: how many sources and sinks there are; a seed, or 0; cycles that fill the circuit, or 0; cycles without
    // a beat after which it counts as stuck.
    void begin(size_t offering, size_t taking, uint64_t seed, int64_t filling, int64_t most) {
        sources = offering, random = filling ? 1 : seed, full = filling, patience = most;
        spell.assign(offering + taking, 0), odds.assign(offering + taking, 0);
    }

    bool any() const { return random; }

    bool fills_up() const { return full; }

    // Whether nothing is to move until the circuit is full.
    bool waits() const { return full && opens <= 0; }

    // Whether a side offers a beat, or takes one, in this cycle: seldom, every other time, nearly always, always, in
    // spells; now and then not at all, for as long as fills every queue.
    bool goes(size_t side) {
        if (full) return side < sources || opens > 0;
        if (!random) return true;
        if (spell[side]-- <= 0) {
            constexpr uint64_t ODDS[] = {10, 128, 246, 256};
            const bool stops = draw() % 16 == 0;
            const int64_t longest = !stops ? 512 : patience / 4 < LONGEST_STOP ? patience / 4 : LONGEST_STOP;
            spell[side] = static_cast<int64_t>(draw() % static_cast<uint64_t>(longest + 1));
            odds[side] = stops ? 0 : ODDS[draw() % 4];
        }
        return draw() % 256 < odds[side];
    }

    // Once the circuit is full, a few beats are taken, then more, and then so many that it runs empty.
    void moved(bool given, bool taken) {
        constexpr uint64_t MOST[] = {1, 4, 32, 512};
        if (!full) return;
        if (taken) --opens;
        refused = given || opens > 0 ? 0 : refused + 1;
        if (refused > full) opens = 1 + static_cast<int64_t>(draw() % MOST[fills++ % 4]);
    }
};
