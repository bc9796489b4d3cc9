// The simulator's own program, beside cocotb's: plays beats back to back and records what comes, at the full speed of the
// model. It keeps the protocol of axi_stream.py and harness.py for sources that never idle and sinks that never pause,
// with +stalls=SEED for ones that do at random, each by itself, and with +full=CYCLES for sinks that take nothing until no
// beat has been accepted for so long, and then a few; with +sample=BEATS and +result=BEATS for sources that send a sample
// when all results of the one before are out; +misplaced=1 says that some beats of the first source have tlast too early
// or too late; +waves shows all signals. Numbers of several ports stand behind each other, with commas. It judges nothing
// but what ends a run. The linker calls it in place of cocotb's main, which it hands over to unless the first argument is
// --drive.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "design.h"
#include "stalls.h"
#include "verilated.h"
#include "verilated_vpi.h"

extern "C" int __real_main(int argc, char** argv);

namespace {

constexpr int RESET_CYCLES = 4;
constexpr int64_t SHORTEST_DRAIN = 64, LONGEST_DRAIN = 10000;

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

// The place of a file of a port: the first has none in its name.
std::string placed(const char* name, size_t port, const char* kind) {
    return name + (port ? "_" + std::to_string(port) : std::string()) + kind;
}

std::vector<int64_t> numbers(const char* text) {
    std::vector<int64_t> found;
    for (const char* at = text; *at; at += *at == ',') {
        char* end = nullptr;
        found.push_back(std::strtoll(at, &end, 10));
        at = end;
    }
    return found;
}

struct Source {
    Pins at;
    int64_t bytes;                // of a beat
    std::vector<uint8_t> beats;   // of each beat its bytes and then tlast
    int64_t count;                // of them
    FILE* accepted;               // cycle of each
    int64_t sent = 0, sample = 0; // Beats that were sent, and of a sample in a closed loop; else 0.

    bool left() const { return sent < count; }

    // The beat to be sent next, or its inverse without tvalid.
    void offer(bool valid) {
        const uint8_t* beat = left() ? &beats[static_cast<size_t>(sent * (bytes + 1))] : nullptr;
        for (int64_t n = 0; n < bytes; ++n) at.data[n] = static_cast<uint8_t>((beat ? beat[n] : 0) ^ (valid ? 0 : 0xff));
        const uint8_t last = beat ? beat[bytes] : 0;
        *at.last = valid ? last : 1 - last;
        *at.valid = valid;
    }

    bool moves() const { return *at.valid && *at.ready; }

    // What moves at the rising edge of a cycle, before the circuit sees it.
    bool give(int64_t now) {
        if (!moves()) return false;
        std::fwrite(&now, sizeof now, 1, accepted);
        ++sent;
        return true;
    }
};

struct Sink {
    Pins at;
    int64_t bytes, due;           // of a beat; beats
    FILE* taken;                  // cycle, tlast as another word, and bytes of each beat
    int64_t came = 0, result = 0; // Beats that came, and of the result of a sample in a closed loop; else 0.
    std::vector<uint8_t> held;    // A beat that waits, with tlast behind it.

    // What a beat that waits must not do: "withdrawn" or "changed".
    const char* kept() {
        if (!held.empty() && !*at.valid) return "withdrawn";
        std::vector<uint8_t> now(at.data, at.data + bytes);
        now.push_back(*at.last);
        if (!held.empty() && now != held) return "changed";
        held.clear();
        if (*at.valid && !*at.ready) held = now;
        return "";
    }

    bool take(int64_t now) {
        if (!*at.valid) return false;
        const int64_t head[2] = {now, *at.last};
        std::fwrite(head, sizeof head, 1, taken);
        std::fwrite(at.data, 1, static_cast<size_t>(bytes), taken);
        ++came;
        return true;
    }
};

class Drive {
    VerilatedContext context;
    std::unique_ptr<Design> top;
    bool waves = false;  // Edges rise at odd times.
    std::vector<Source> sources;
    std::vector<Sink> sinks;
    std::vector<bool> given;       // Whether each source moves at this edge.
    std::vector<int64_t> moments;  // Of resets: cycles from the start of a sequence, and how many it lasts.
    const int64_t sequences, patience;
    int64_t cycle = 0;
    int64_t seen[2] = {0, 0};  // Cycles in which protected memories corrected a word, and whether one stayed wrong.
    Stalls stalls;
    bool patient = false;  // The sinks are ready only where they have seen a beat: of every fourth seed.
    bool misplaced = false;  // Some tlast of the beats.
    std::string flipped;     // Register of which a bit is flipped once, its path in the circuit,
    int64_t flip_bit = 0, flip_at = -1;  // which bit, and behind which rising edge.

    // What is wrong, and with which sink, where it is not the first one.
    std::string fault(const char* kind, size_t sink) const { return kind + (sink ? " " + std::to_string(sink) : std::string()); }

    // Whether a source has a beat to send.
    bool sends(const Source& source) const {
        for (const Sink& sink : sinks)
            if (source.sample && source.sent / source.sample > sink.came / sink.result) return false;
        return source.left();
    }

    bool done(int64_t times = 1) const {
        for (const Source& source : sources)
            if (source.left()) return false;
        for (const Sink& sink : sinks)
            if (sink.came < sink.due / times) return false;
        return true;
    }

    // What sources send at this rising edge, before the circuit sees it: whether any does.
    bool give() {
        bool any = false;
        for (size_t n = 0; n < sources.size(); ++n) any |= given[n] = sources[n].give(cycle + 1);
        return any;
    }

    void ready(bool all) {
        for (Sink& sink : sinks) *sink.at.ready = all;
    }

    void rise() {
        top->clock(true);
        ++cycle;
        top->see(seen);
        if (cycle == flip_at) flip();
        if (waves) top->show(2 * cycle - 1);
    }

    void flip() {
        vpiHandle handle = vpi_handle_by_name(const_cast<char*>(("TOP." + flipped).c_str()), nullptr);
        if (!handle) {
            std::fprintf(stderr, "%%Error: no register %s\n", flipped.c_str());
            std::exit(3);
        }
        s_vpi_value value;
        value.format = vpiBinStrVal;
        vpi_get_value(handle, &value);
        std::string bits = value.value.str;
        char& bit = bits.at(bits.size() - 1 - static_cast<size_t>(flip_bit));
        bit = bit == '0' ? '1' : '0';
        value.value.str = const_cast<char*>(bits.c_str());
        vpi_put_value(handle, &value, nullptr, vpiNoDelay);
        vpi_release_handle(handle);
    }

    void settle() {
        top->clock(false);
        if (waves) top->show(2 * cycle);
    }

    // The first sink that a reset does not silence, or how many there are.
    size_t reset(int64_t cycles) {
        top->reset(true);
        ready(false);
        top->idle();
        for (Source& source : sources) source.offer(false);
        settle();
        for (int64_t n = 0; n < cycles; ++n) {
            for (size_t at = 0; at < sinks.size(); ++at)
                if (n > 0 && *sinks[at].at.valid) {
                    rise();
                    return at;
                }
            rise();
            settle();
        }
        top->reset(false);
        return sinks.size();
    }

    void tell(int64_t done) {
        if (FILE* file = std::fopen("progress", "w")) {
            std::fprintf(file, "%lld", static_cast<long long>(done));
            std::fclose(file);
        }
    }

    // What moves while nothing is recorded: a sequence that a reset will cut off.
    void move() {
        for (size_t n = 0; n < sources.size(); ++n) given[n] = sources[n].moves();
        rise();
        for (size_t n = 0; n < sources.size(); ++n) {
            Source& source = sources[n];
            if (given[n]) source.sent = (source.sent + 1) % source.count;
            if (given[n] || !*source.at.valid) source.offer(stalls.goes(n));
        }
        for (size_t n = 0; n < sinks.size(); ++n) *sinks[n].at.ready = stalls.goes(sources.size() + n);
        settle();
    }

    void start() {
        ready(true);
        for (Source& source : sources) {
            source.sent = 0;
            source.offer(true);
        }
        for (Sink& sink : sinks) sink.came = 0;
        settle();
    }

    // The sequence once for each moment: cut off by a reset so many cycles after its start, stalled if anything is, and
    // then whole and never stalled.
    std::string sweep() {
        const int64_t times = static_cast<int64_t>(moments.size()) / 2;
        size_t loud = reset(RESET_CYCLES);
        if (loud < sinks.size()) return fault("reset", loud);
        if (!top->flags_right(false)) return "flags";
        for (int64_t n = 0; n < times; ++n) {
            start();
            for (int64_t left = moments[2 * n]; left; --left) move();
            loud = reset(moments[2 * n + 1]);
            if (loud < sinks.size()) return fault("reset", loud);
            if (!top->flags_right(false)) return "flags";
            start();
            int64_t quiet = 0;
            while (!done(times)) {
                bool moved = false;
                for (size_t at = 0; at < sinks.size(); ++at) {
                    moved |= sinks[at].take(cycle + 1);
                    if (sinks[at].came > sinks[at].due / times) return fault("surplus", at);
                }
                moved |= give();
                rise();
                for (size_t at = 0; at < sources.size(); ++at)
                    if (given[at]) sources[at].offer(sources[at].left());
                settle();
                quiet = moved ? 0 : quiet + 1;
                if (quiet > patience) return "stuck";
            }
            if (!top->flags_right(misplaced)) return "flags";
            tell(n + 1);
        }
        return "";
    }

    std::string play() {
        if (!moments.empty()) return sweep();
        const size_t loud = reset(RESET_CYCLES);
        if (loud < sinks.size()) return fault("reset", loud);
        if (!top->flags_right(false)) return "flags";
        ready(!stalls.fills_up());
        settle();
        rise();  // A cycle without input, whose inverted data nobody may take.
        for (Source& source : sources) source.offer(source.count > 0);
        settle();
        tell(0);
        const int64_t start = cycle, each = sinks[0].due / (sequences ? sequences : 1);
        int64_t quiet = 0;
        auto told = std::chrono::steady_clock::now();
        while (!done()) {
            bool taken = false;
            for (size_t n = 0; n < sinks.size(); ++n) {
                if (sinks[n].came > sinks[n].due) return fault("surplus", n);  // It might never end.
                const std::string broken = stalls.any() ? sinks[n].kept() : "";
                if (!broken.empty()) return fault(broken.c_str(), n);
                taken |= *sinks[n].at.ready && sinks[n].take(cycle + 1);
            }
            const bool any = give();
            stalls.moved(any, taken);
            rise();
            for (size_t n = 0; n < sources.size(); ++n)
                if (given[n] || !*sources[n].at.valid) sources[n].offer(sends(sources[n]) && stalls.goes(n));
            if (patient) {
                ready(false);
                settle();
            }
            for (size_t n = 0; n < sinks.size(); ++n)
                *sinks[n].at.ready = (!patient || *sinks[n].at.valid) && stalls.goes(sources.size() + n);
            settle();
            quiet = taken || any || stalls.waits() ? 0 : quiet + 1;
            if (quiet > patience) return "stuck";
            if (taken && each) {
                const auto now = std::chrono::steady_clock::now();
                if (now - told > std::chrono::milliseconds(200)) {
                    told = now;
                    tell(sinks[0].came / each < sequences ? sinks[0].came / each : sequences);
                }
            }
        }
        const int64_t drain = SHORTEST_DRAIN + (cycle - start) / (sequences ? sequences : 1);
        ready(true);
        settle();
        for (int64_t left = drain < LONGEST_DRAIN ? drain : LONGEST_DRAIN; left; --left) {
            for (Sink& sink : sinks) sink.take(cycle + 1);
            rise();
            settle();
        }
        return top->flags_right(misplaced) ? "" : "flags";
    }

public:
    Drive(int argc, char** argv) : sequences(std::stoll(argv[4])), patience(std::stoll(argv[6])) {
        context.commandArgs(argc, argv);
        Verilated::threadContextp(&context);  // In which registers are looked for.
        top = design(context);
        const std::vector<int64_t> sent = numbers(argv[2]), came = numbers(argv[3]), due = numbers(argv[5]);
        for (const Pins& pins : top->sources()) {
            const size_t n = sources.size();
            std::vector<uint8_t> beats = contents(placed("beats", n, ".bin").c_str());
            const int64_t count = static_cast<int64_t>(beats.size()) / (sent.at(n) + 1);
            sources.push_back({pins, sent[n], beats, count, std::fopen(placed("accepted", n, ".bin").c_str(), "wb")});
        }
        for (const Pins& pins : top->sinks()) {
            const size_t n = sinks.size();
            sinks.push_back({pins, came.at(n), due.at(n), std::fopen(placed("taken", n, ".bin").c_str(), "wb")});
        }
        uint64_t random = 0;
        int64_t full = 0;
        for (int n = 7; n < argc; ++n) {
            if (!std::strncmp(argv[n], "+stalls=", 8)) random = std::stoull(argv[n] + 8);
            if (!std::strcmp(argv[n], "+misplaced=1")) misplaced = true;
            if (!std::strncmp(argv[n], "+sample=", 8))
                for (size_t at = 0; at < sources.size(); ++at) sources[at].sample = numbers(argv[n] + 8).at(at);
            if (!std::strncmp(argv[n], "+result=", 8))
                for (size_t at = 0; at < sinks.size(); ++at) sinks[at].result = numbers(argv[n] + 8).at(at);
            if (!std::strncmp(argv[n], "+flip=", 6)) {  // PATH,BIT,CYCLE
                const std::string given = argv[n] + 6;
                flipped = given.substr(0, given.find(','));
                const std::vector<int64_t> where = numbers(given.c_str() + flipped.size() + 1);
                flip_bit = where.at(0), flip_at = where.at(1);
            }
            if (!std::strncmp(argv[n], "+full=", 6)) full = std::stoll(argv[n] + 6);
            if (!std::strcmp(argv[n], "+waves")) waves = true;
        }
        if (waves) top->open_waves();
        given.resize(sources.size());
        patient = random && random % 4 == 0 && !full;
        stalls.begin(sources.size(), sinks.size(), random, full, patience);
        const std::vector<uint8_t> bytes = contents("moments.bin");
        moments.resize(bytes.size() / sizeof(int64_t));
        if (!bytes.empty()) std::memcpy(moments.data(), bytes.data(), moments.size() * sizeof(int64_t));
    }

    // Cycles, seconds, and the broken rule, if any, as `Outcome` has them.
    int run() {
        std::vector<FILE*> files;
        for (const Source& source : sources) files.push_back(source.accepted);
        for (const Sink& sink : sinks) files.push_back(sink.taken);
        for (FILE* each : files)
            if (!each) return 1;
        const auto start = std::chrono::steady_clock::now();
        const std::string broken = play();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        bool written = true;
        for (FILE* each : files) written &= !std::fclose(each);
        top->end();
        FILE* file = written ? std::fopen("driven", "w") : nullptr;
        if (!file) return 1;
        std::fprintf(file, "%lld %.9f %s", static_cast<long long>(cycle), seconds, broken.c_str());
        if (std::fclose(file) || !(file = std::fopen("seen", "w"))) return 1;
        std::fprintf(file, "%lld %lld", static_cast<long long>(seen[0]), static_cast<long long>(seen[1]));
        return std::fclose(file) ? 1 : 0;
    }
};

}  // namespace

extern "C" int __wrap_main(int argc, char** argv) {
    if (argc > 6 && std::string(argv[1]) == "--drive") return Drive(argc, argv).run();
    return __real_main(argc, argv);
}
