// The simulator's own program, beside cocotb's: plays beats back to back and records what comes, at the full speed of the
// model. It keeps the protocol of axi_stream.py and harness.py for a source that never idles and a sink that never pauses,
// with +stalls=SEED for ones that do at random, and with +full=CYCLES for a sink that takes nothing until no beat has been
// accepted for so long, and then a few; with +sample=BEATS and +result=BEATS for a source that sends a sample when the
// result of the one before is out; +misplaced=1 says that some beats have tlast too early or too late; +waves shows all
// signals. It judges nothing but what ends a run. The linker calls it in place of cocotb's main, which it hands over to
// unless the first argument is --drive.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vtop.h"
#include "ports.h"  // CLOCK, RESET, S(signal), M(signal), IDLE and FLAGS_RIGHT(misplaced) of the design
#include "stalls.h"
#include "verilated.h"
#include "waves.h"

extern "C" int __real_main(int argc, char** argv);

namespace {

constexpr int RESET_CYCLES = 4;
constexpr int64_t SHORTEST_DRAIN = 64, LONGEST_DRAIN = 10000;

struct Files {
    std::vector<uint8_t> beats;  // of each beat its bytes and then tlast
    std::vector<int64_t> moments;  // Of resets: cycles from the start of a sequence, and how many it lasts.
    FILE* accepted;              // cycle of each input beat
    FILE* taken;                 // cycle, tlast as another word, and bytes of each output beat
};

std::vector<uint8_t> contents(const char* name) {
    std::vector<uint8_t> bytes;
    if (FILE* file = std::fopen(name, "rb")) {
        std::fseek(file, 0, SEEK_END);
        bytes.resize(static_cast<size_t>(std::ftell(file)));
        std::rewind(file);
        if (std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) bytes.clear();
        std::fclose(file);
    }
    return bytes;
}

class Drive {
    VerilatedContext context;
    std::unique_ptr<Vtop> top;
    Waves waves;  // Edges rise at odd times.
    Files files;
    const int64_t input_bytes, output_bytes, sequences, due, patience;
    const int64_t count;
    int64_t cycle = 0, sent = 0, came = 0;
    Stalls stalls;
    bool patient = false;  // The sink is ready only where it has seen a beat: of every fourth seed.
    bool misplaced = false;  // Some tlast of the beats.
    int64_t sample = 0, result = 0;  // Beats of each, in a closed loop; else 0.
    std::vector<uint8_t> held;  // An output beat that waits, with tlast behind it.

    // What a beat that waits must not do: "withdrawn" or "changed".
    const char* kept() {
        if (!stalls.any()) return "";
        const uint8_t* pins = reinterpret_cast<const uint8_t*>(&top->M(data));
        const bool valid = top->M(valid);
        if (!held.empty() && !valid) return "withdrawn";
        std::vector<uint8_t> now(pins, pins + output_bytes);
        now.push_back(top->M(last));
        if (!held.empty() && now != held) return "changed";
        held.clear();
        if (valid && !top->M(ready)) held = now;
        return "";
    }

    // Whether the source has a beat to send.
    bool sends() const { return sent < count && (!sample || sent / sample <= came / result); }

    void rise() {
        top->CLOCK = 1;
        top->eval();
        ++cycle;
        waves.show(2 * cycle - 1);
    }

    void settle() {
        top->CLOCK = 0;
        top->eval();
        waves.show(2 * cycle);
    }


    // The beat to be sent next, or its inverse without tvalid.
    void offer(bool valid) {
        const bool there = sent < count;
        const uint8_t* beat = there ? &files.beats[static_cast<size_t>(sent * (input_bytes + 1))] : nullptr;
        auto* pins = reinterpret_cast<uint8_t*>(&top->S(data));
        for (int64_t n = 0; n < input_bytes; ++n) pins[n] = static_cast<uint8_t>((there ? beat[n] : 0) ^ (valid ? 0 : 0xff));
        const uint8_t last = there ? beat[input_bytes] : 0;
        top->S(last) = valid ? last : 1 - last;
        top->S(valid) = valid;
    }

    // What moves at this rising edge, before the circuit sees it.
    bool take() {
        if (!top->M(valid)) return false;
        const int64_t head[2] = {cycle + 1, top->M(last)};
        std::fwrite(head, sizeof head, 1, files.taken);
        std::fwrite(&top->M(data), 1, static_cast<size_t>(output_bytes), files.taken);
        ++came;
        return true;
    }

    bool give() {
        if (!top->S(valid) || !top->S(ready)) return false;
        const int64_t now = cycle + 1;
        std::fwrite(&now, sizeof now, 1, files.accepted);
        ++sent;
        return true;
    }

    bool reset(int64_t cycles) {
        top->RESET = 1, top->M(ready) = 0;
        IDLE;
        offer(false);
        settle();
        for (int64_t n = 0; n < cycles; ++n) {
            const bool loud = n > 0 && top->M(valid);
            rise();
            if (loud) return false;
            settle();
        }
        top->RESET = 0;
        return true;
    }

    void tell(int64_t done) {
        if (FILE* file = std::fopen("progress", "w")) {
            std::fprintf(file, "%lld", static_cast<long long>(done));
            std::fclose(file);
        }
    }

    // What moves while nothing is recorded: a sequence that a reset will cut off.
    void move() {
        const bool given = top->S(valid) && top->S(ready);
        rise();
        if (given) sent = (sent + 1) % count;
        if (given || !top->S(valid)) offer(stalls.goes(0));
        top->M(ready) = stalls.goes(1);
        settle();
    }

    // The sequence once for each moment: cut off by a reset so many cycles after its start, stalled if anything is, and
    // then whole and never stalled.
    const char* sweep() {
        const int64_t moments = static_cast<int64_t>(files.moments.size()) / 2, each = due / moments;
        if (!reset(RESET_CYCLES)) return "reset";
        if (!FLAGS_RIGHT(false)) return "flags";
        for (int64_t n = 0; n < moments; ++n) {
            top->M(ready) = 1, sent = 0;
            offer(true);
            settle();
            for (int64_t left = files.moments[2 * n]; left; --left) move();
            if (!reset(files.moments[2 * n + 1])) return "reset";
            if (!FLAGS_RIGHT(false)) return "flags";
            top->M(ready) = 1, sent = came = 0;
            offer(true);
            settle();
            int64_t quiet = 0;
            while (sent < count || came < each) {
                const bool taken = take(), given = give();
                if (came > each) return "surplus";
                rise();
                if (given) offer(sent < count);
                settle();
                quiet = taken || given ? 0 : quiet + 1;
                if (quiet > patience) return "stuck";
            }
            if (!FLAGS_RIGHT(misplaced)) return "flags";
            tell(n + 1);
        }
        return "";
    }

    const char* play() {
        if (!files.moments.empty()) return sweep();
        if (!reset(RESET_CYCLES)) return "reset";
        if (!FLAGS_RIGHT(false)) return "flags";
        top->M(ready) = !stalls.fills_up();
        settle();
        rise();  // A cycle without input, whose inverted data nobody may take.
        offer(count > 0);
        settle();
        tell(0);
        const int64_t start = cycle, each = due / (sequences ? sequences : 1);
        int64_t quiet = 0;
        auto told = std::chrono::steady_clock::now();
        while (sent < count || came < due) {
            if (came > due) return "surplus";  // It might never end.
            const std::string fault = kept();
            if (!fault.empty()) return fault == "changed" ? "changed" : "withdrawn";
            const bool taken = top->M(ready) && take(), given = give();
            stalls.moved(given, taken);
            rise();
            if (given || !top->S(valid)) offer(sends() && stalls.goes(0));
            if (patient) {
                top->M(ready) = 0;
                settle();
            }
            top->M(ready) = (!patient || top->M(valid)) && stalls.goes(1);
            settle();
            quiet = taken || given || stalls.waits() ? 0 : quiet + 1;
            if (quiet > patience) return "stuck";
            if (taken && each) {
                const auto now = std::chrono::steady_clock::now();
                if (now - told > std::chrono::milliseconds(200)) {
                    told = now;
                    tell(came / each < sequences ? came / each : sequences);
                }
            }
        }
        const int64_t drain = SHORTEST_DRAIN + (cycle - start) / (sequences ? sequences : 1);
        top->M(ready) = 1;
        settle();
        for (int64_t left = drain < LONGEST_DRAIN ? drain : LONGEST_DRAIN; left; --left) {
            take();
            rise();
            settle();
        }
        return FLAGS_RIGHT(misplaced) ? "" : "flags";
    }

public:
    Drive(int argc, char** argv)
        : input_bytes(std::stoll(argv[2])), output_bytes(std::stoll(argv[3])), sequences(std::stoll(argv[4])),
          due(std::stoll(argv[5])), patience(std::stoll(argv[6])),
          count([this] {
              files.beats = contents("beats.bin");
              return static_cast<int64_t>(files.beats.size()) / (input_bytes + 1);
          }()) {
        context.commandArgs(argc, argv);
        top = std::make_unique<Vtop>(&context);
        uint64_t random = 0;
        int64_t full = 0;
        for (int n = 7; n < argc; ++n) {
            if (!std::strncmp(argv[n], "+stalls=", 8)) random = std::stoull(argv[n] + 8);
            if (!std::strcmp(argv[n], "+misplaced=1")) misplaced = true;
            if (!std::strncmp(argv[n], "+sample=", 8)) sample = std::stoll(argv[n] + 8);
            if (!std::strncmp(argv[n], "+result=", 8)) result = std::stoll(argv[n] + 8);
            if (!std::strncmp(argv[n], "+full=", 6)) full = std::stoll(argv[n] + 6);
            if (!std::strcmp(argv[n], "+waves")) waves.open(context, *top);
        }
        patient = random && random % 4 == 0 && !full;
        stalls.begin(random, full, patience);
        const std::vector<uint8_t> bytes = contents("moments.bin");
        files.moments.resize(bytes.size() / sizeof(int64_t));
        if (!bytes.empty()) std::memcpy(files.moments.data(), bytes.data(), files.moments.size() * sizeof(int64_t));
        files.accepted = std::fopen("accepted.bin", "wb");
        files.taken = std::fopen("taken.bin", "wb");
    }

    // Cycles, seconds, and the broken rule, if any, as `Outcome` has them.
    int run() {
        if (!files.accepted || !files.taken) return 1;
        const auto start = std::chrono::steady_clock::now();
        const std::string fault = play();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        const bool written = !std::fclose(files.accepted) && !std::fclose(files.taken);
        top->final();
        waves.close();
        FILE* file = written ? std::fopen("driven", "w") : nullptr;
        if (!file) return 1;
        std::fprintf(file, "%lld %.9f %s", static_cast<long long>(cycle), seconds, fault.c_str());
        return std::fclose(file) ? 1 : 0;
    }
};

}  // namespace

extern "C" int __wrap_main(int argc, char** argv) {
    if (argc > 6 && std::string(argv[1]) == "--drive") return Drive(argc, argv).run();
    return __real_main(argc, argv);
}
