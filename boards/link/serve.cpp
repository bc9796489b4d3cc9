// A simulated device: a design behind a UART, whose two lines are a pseudo-terminal. It says the terminal's name and
// serves until its standard input ends.
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>
#include <deque>
#include "Vlinked.h"
#include "verilated.h"

static const int kQuiet = 4 * 65536;  // Cycles without a byte after which nothing more comes by itself.

int main(int argc, char** argv) {
  Verilated::commandArgs(argc, argv);
  const int divisor = atoi(argv[1]);
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) || unlockpt(master)) return perror("pseudo-terminal"), 1;
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);  // Kept, so that a host may come and go.
  termios raw;
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  printf("%s\n", ptsname(master));
  fflush(stdout);

  Vlinked linked;
  std::deque<unsigned char> come;
  int sent = -1, bits = 0;             // The byte on the line to the device: its frame, and the bits that are left.
  int timer = 0, got = -1, wait = 0;   // The byte from the device: bits so far, cycles to the middle of the next.
  unsigned word = 0;
  linked.rx = 1;
  linked.rst = 1;
  for (long cycle = 0, quiet = 0;; ++cycle, ++quiet) {
    linked.rst = cycle < 4;
    linked.clk = 0;
    linked.eval();
    linked.clk = 1;
    linked.eval();
    if (timer) {
      --timer;
    } else if (bits) {
      linked.rx = sent & 1;
      sent >>= 1;
      --bits;
      timer = divisor - 1;
    } else if (!come.empty()) {
      sent = come.front() << 1 | 0x200;
      come.pop_front();
      bits = 10;
      quiet = 0;
    }
    if (got < 0) {
      if (!linked.tx && cycle > 8) got = 0, wait = divisor + divisor / 2, word = 0;
    } else if (--wait == 0) {
      if (got < 8) {
        word |= (linked.tx & 1) << got++;
        wait = divisor;
      } else {
        const unsigned char byte = word;
        if (write(master, &byte, 1) != 1) return 1;
        got = -1;
        quiet = 0;
      }
    }
    const bool idle = come.empty() && !bits && got < 0;
    if (idle && (quiet > kQuiet || cycle % 64 == 0)) {
      pollfd ready[2] = {{master, POLLIN, 0}, {0, POLLIN, 0}};
      poll(ready, 2, quiet > kQuiet ? -1 : 0);
      if (ready[1].revents) return 0;
      if (ready[0].revents & POLLIN) {
        unsigned char buffer[4096];
        const ssize_t count = read(master, buffer, sizeof buffer);
        for (ssize_t n = 0; n < count; ++n) come.push_back(buffer[n]);
      }
    }
  }
}
