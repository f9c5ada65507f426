// SPDX-License-Identifier: MIT OR Apache-2.0
// zkpu-sim and its C interface; zkpu_sim.h describes both.
#include "zkpu_sim.h"
#include "host.h"
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <poll.h>
#include <unistd.h>

struct zkpu_sim {
    Board board;
    zkpu_sim(const char *firmware, uint64_t bytes, uint64_t id) : board(firmware, bytes, id) {}
};

zkpu_sim *zkpu_sim_open(const char *firmware, uint64_t device_bytes, uint64_t power_on_id) {
    return new zkpu_sim(firmware, device_bytes, power_on_id);
}
void zkpu_sim_close(zkpu_sim *sim) { delete sim; }
uint32_t zkpu_sim_register_read(zkpu_sim *sim, uint32_t offset) { return sim->board.read32(offset); }
void zkpu_sim_register_write(zkpu_sim *sim, uint32_t offset, uint32_t value) { sim->board.write32(offset, value); }
void zkpu_sim_step(zkpu_sim *sim, uint64_t clocks) { sim->board.tick(clocks); }
uint64_t zkpu_sim_clocks(const zkpu_sim *sim) { return sim->board.now(); }
int zkpu_sim_interrupt(const zkpu_sim *sim) { return sim->board.interrupt(); }
int zkpu_sim_core_busy(const zkpu_sim *sim) { return sim->board.core_busy(); }
uint64_t zkpu_sim_host_base(const zkpu_sim *) { return Board::HOST_BASE; }
uint64_t zkpu_sim_host_bytes(const zkpu_sim *) { return Board::HOST_BYTES; }
static bool inside(uint64_t address, uint64_t bytes) {
    return address >= Board::HOST_BASE && bytes <= Board::HOST_BYTES && address - Board::HOST_BASE <= Board::HOST_BYTES - bytes;
}
int zkpu_sim_host_read(zkpu_sim *sim, uint64_t address, void *data, uint64_t bytes) {
    if (!inside(address, bytes)) return -1;
    if (bytes) memcpy(data, sim->board.host(address), bytes);
    return 0;
}
int zkpu_sim_host_write(zkpu_sim *sim, uint64_t address, const void *data, uint64_t bytes) {
    if (!inside(address, bytes)) return -1;
    if (bytes) memcpy(sim->board.host(address), data, bytes);
    return 0;
}

#ifndef ZKPU_SIM_LIBRARY
namespace {

using Bytes = std::vector<uint8_t>;
constexpr uint32_t FRAME_MAX = (1 << 20) + 128, DATA_MAX = 1 << 20, QUEUES_IO = 4;
constexpr uint64_t SETTLE = 20000;  // clocks to run after the last sign of work: the firmware's loop has come by

template <class T> T get(const Bytes &b, size_t at) {
    T value{};
    if (at + sizeof value <= b.size()) memcpy(&value, &b[at], sizeof value);
    return value;
}
template <class T> void put(Bytes &b, T value) {
    const auto *p = reinterpret_cast<const uint8_t *>(&value);
    b.insert(b.end(), p, p + sizeof value);
}

void send(uint8_t kind, uint32_t tag, const Bytes &body) {
    Bytes frame;
    put(frame, uint32_t(8 + body.size()));
    put(frame, uint32_t(kind));
    put(frame, tag);
    for (uint8_t byte : body) frame.push_back(byte);
    for (size_t at = 0; at < frame.size();) {
        const ssize_t n = write(1, &frame[at], frame.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) exit(0);  // nobody reads any more
        at += n;
    }
}
void refuse(uint32_t tag, const std::string &text) { send(255, tag, Bytes(text.begin(), text.end())); }

struct Outstanding {
    uint32_t tag, bytes;
    int queue;
    uint16_t cid;
    std::vector<uint64_t> pages;
    bool from_device, event_request;
};

class Server {
  public:
    Server(const char *firmware, uint64_t bytes, uint64_t id) : firmware(firmware), device_bytes(bytes) { power_on(id); }

    int run() {
        if (!up()) return 1;
        Bytes input;
        for (;;) {
            const bool working = active();
            struct pollfd descriptor = {0, POLLIN, 0};
            const int ready = poll(&descriptor, 1, working ? 0 : -1);
            if (ready > 0) {
                uint8_t buffer[65536];
                const ssize_t n = read(0, buffer, sizeof buffer);
                if (n < 0 && errno == EINTR) continue;
                if (n <= 0) return 0;
                input.insert(input.end(), buffer, buffer + n);
                if (!frames(input)) return 0;
            }
            if (active()) {
                sim->board.tick(200);
                answer();
            }
        }
    }

  private:
    const char *firmware;
    uint64_t device_bytes;
    std::unique_ptr<zkpu_sim> sim;
    std::unique_ptr<Host> host;
    std::vector<Outstanding> outstanding;
    uint64_t last_work = 0;
    bool enabled = false;

    void power_on(uint64_t id) {
        host.reset();
        sim.reset();  // before the next: one simulation at a time
        sim = std::make_unique<zkpu_sim>(firmware, device_bytes, id);
        host = std::make_unique<Host>(sim->board);
        last_work = 0;
    }

    bool up(uint32_t cc = 6 << 16 | 4 << 20 | 6 << 4 | 1) {
        enabled = false;
        if (!(cc & 1)) return host->disable();
        if (!host->enable_with(64, cc)) return false;
        for (uint32_t q = 1; q <= QUEUES_IO; q++)
            if (!host->create_queues(q, 64, 64, q).ok()) return false;
        return enabled = true;
    }

    // Forgets the commands of a queue, of all queues where `queue` is negative.
    void drop(int queue) {
        for (const auto &o : outstanding)
            if (queue < 0 || o.queue == queue) send(143, o.tag, {});
        std::erase_if(outstanding, [queue](const Outstanding &o) { return queue < 0 || o.queue == queue; });
    }

    bool active() {
        bool work = sim->board.core_busy();
        for (const auto &o : outstanding) work = work || !o.event_request;
        if (work) last_work = sim->board.now();
        return work || sim->board.now() - last_work < SETTLE;
    }

    // Handles the whole frames in `input`; false to end.
    bool frames(Bytes &input) {
        size_t at = 0;
        while (input.size() - at >= 4) {
            const uint32_t length = get<uint32_t>(input, at);
            if (length < 8 || length > FRAME_MAX) {
                refuse(0, "frame of a length out of range");
                return false;
            }
            if (input.size() - at - 4 < length) break;
            const Bytes frame(input.begin() + at, input.begin() + at + 4 + length);
            at += 4 + length;
            if (!request(frame)) return false;
        }
        input.erase(input.begin(), input.begin() + at);
        return true;
    }

    bool request(const Bytes &f) {
        const uint32_t tag = get<uint32_t>(f, 8);
        Bytes body;
        last_work = sim->board.now();
        switch (f[4]) {
            case 1: command(f, tag); break;
            case 2:
            case 6:
                drop(-1);
                if (f[4] == 6) power_on(get<uint64_t>(f, 12));
                put(body, uint32_t(f[4] == 2 && f.size() >= 16 ? up(get<uint32_t>(f, 12)) : up()));
                send(f[4] + 128, tag, body);
                break;
            case 3:
                put(body, sim->board.read32(get<uint32_t>(f, 12) & 0x3ffc));
                send(131, tag, body);
                break;
            case 4:
                sim->board.write32(get<uint32_t>(f, 12) & 0x3ffc, get<uint32_t>(f, 16));
                send(132, tag, body);
                break;
            case 5:
                put(body, sim->board.now());
                put(body, uint32_t(sim->board.core_busy()));
                put(body, uint32_t(outstanding.size()));
                send(133, tag, body);
                break;
            case 7: return false;
            case 8: {
                const uint32_t queue = get<uint16_t>(f, 12);
                if (queue == 0 || queue > QUEUES_IO || !enabled) {
                    refuse(tag, "no such queue");
                    break;
                }
                drop(int(queue));
                put(body, uint32_t(host->renew_queues(uint16_t(queue), uint16_t(queue))));
                send(136, tag, body);
                break;
            }
            default: refuse(tag, "unknown request");
        }
        return true;
    }

    void command(const Bytes &f, uint32_t tag) {
        const uint32_t queue = get<uint16_t>(f, 12), direction = get<uint8_t>(f, 14), bytes = get<uint32_t>(f, 16);
        if (f.size() < 84 || queue > QUEUES_IO || direction > 2 || bytes > DATA_MAX)
            return refuse(tag, "malformed command frame");
        if (direction == 1 && f.size() != 84 + size_t(bytes)) return refuse(tag, "data of another length");
        if (!enabled) return refuse(tag, "the controller is not enabled");
        Command c;
        memcpy(&c, &f[20], 64);
        const bool keeps_id = f[15] & 1;
        size_t in_queue = 0;
        for (const auto &o : outstanding) {
            in_queue += o.queue == int(queue);
            if (keeps_id && o.queue == int(queue) && o.cid == c.cid) return refuse(tag, "identifier in use");
        }
        if (in_queue >= 48) return refuse(tag, "queue full");
        std::vector<uint64_t> pages;
        c.prp1 = c.prp2 = 0;
        if (direction && bytes) {
            const uint64_t first = host->allocate((bytes + 4095) / 4096 * 4096);
            for (uint64_t at = 0; at < bytes; at += 4096) pages.push_back(first + at);
            if (direction == 1) host->gather(pages, 0, const_cast<uint8_t *>(&f[84]), bytes, true);
            host->describe(c, pages, 0);
        }
        if (keeps_id) host->submit_as(int(queue), c);
        else c.cid = host->submit(int(queue), c);
        outstanding.push_back({tag, bytes, int(queue), c.cid, pages, direction == 2, queue == 0 && c.opcode == 0x0c});
    }

    void answer() {
        host->poll();
        for (size_t i = 0; i < outstanding.size();) {
            const Outstanding o = outstanding[i];
            if (!host->has(o.queue, o.cid)) {
                i++;
                continue;
            }
            const Completion c = *host->wait(o.queue, o.cid, 0);
            Bytes body;
            put(body, c.dw0);
            put(body, c.dw1);
            put(body, uint32_t(c.status));
            const uint32_t bytes = o.from_device && c.ok() ? o.bytes : 0;
            put(body, bytes);
            body.resize(16 + bytes);
            if (bytes) host->gather(o.pages, 0, &body[16], bytes, false);
            send(129, o.tag, body);
            outstanding.erase(outstanding.begin() + i);
            last_work = sim->board.now();
        }
    }
};

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: zkpu-sim FIRMWARE.hex [DEVICE_BYTES [POWER_ON_ID]]\n");
        return 2;
    }
    const uint64_t bytes = argc > 2 ? strtoull(argv[2], nullptr, 0) : 64 << 20;
    if (bytes == 0 || bytes % 4096 || bytes > (1ull << 40)) {
        fprintf(stderr, "zkpu-sim: device memory must be a multiple of 4,096 bytes, at most 2^40\n");
        return 2;
    }
    return Server(argv[1], bytes, argc > 3 ? strtoull(argv[3], nullptr, 0) : 1).run();
}
#endif
