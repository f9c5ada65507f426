// SPDX-License-Identifier: MIT OR Apache-2.0
// A host of the simulated board, as a driver behaves: it enables the controller, makes queues, fills submission entries
// with PRP lists, rings doorbells, and reads completions by their phase.
#pragma once
#include "board.h"
#include <map>
#include <optional>

struct Command {
    uint8_t opcode = 0, flags = 0;
    uint16_t cid = 0;
    uint32_t nsid = 0, cdw2 = 0, cdw3 = 0, cdw4 = 0, cdw5 = 0;
    uint64_t prp1 = 0, prp2 = 0;
    uint32_t cdw10 = 0, cdw11 = 0, cdw12 = 0, cdw13 = 0, cdw14 = 0, cdw15 = 0;
};
static_assert(sizeof(Command) == 64);

struct Completion {
    uint32_t dw0, dw1;
    uint16_t sq_head, sq_id, cid, status;  // status: the 15-bit field, without the phase
    bool ok() const { return status == 0; }
    // Type and code, without "more" and "do not retry".
    uint16_t code() const { return status & 0x7ff; }
};

class Host {
  public:
    static constexpr int QUEUES = 5;
    explicit Host(Board &board) : board(board) {}

    // Disables and enables the controller with an admin pair of `entries`; false if CSTS does not follow in time.
    bool enable(uint16_t entries = 16, uint32_t css = 6) { return enable_with(entries, 6 << 16 | 4 << 20 | css << 4 | 1); }
    // Same with a value of CC, whose bit 0 is 1.
    bool enable_with(uint16_t entries, uint32_t cc);
    bool disable();
    Completion create_queues(uint16_t id, uint16_t sq_entries, uint16_t cq_entries, uint16_t vector = 0);
    // Deletes a pair and creates it again where it was; false if the device refuses.
    bool renew_queues(uint16_t id, uint16_t vector);

    // Puts a command into queue `q` and rings the doorbell. Data pages are allocated and described by PRPs.
    uint16_t submit(int q, Command command);
    // Same with the identifier that the command has, which must be free.
    void submit_as(int q, const Command &command);
    // Same, with data of `bytes` in host memory at the returned address; `offset` shifts the first byte in its page.
    uint16_t submit_data(int q, Command command, const void *data, uint32_t bytes, uint32_t offset = 0);
    // Waits for the completion of one command; nothing if it does not come in `clocks`.
    std::optional<Completion> wait(int q, uint16_t cid, uint64_t clocks = 3'000'000);
    // Submit and wait; a missing completion is answered by status FFFFh.
    Completion run(int q, const Command &command);
    Completion write(int q, Command command, const void *data, uint32_t bytes, uint32_t offset = 0);
    Completion read(int q, Command command, void *data, uint32_t bytes, uint32_t offset = 0);
    void poll();
    bool has(int q, uint16_t cid) const { return done.count({q, cid}) != 0; }

    uint64_t allocate(uint64_t bytes);  // pages of host memory; all are free again after enable()
    // PRPs for a buffer at `address` of `bytes`; pages follow each other in reverse order where `scatter`.
    void describe(Command &command, const std::vector<uint64_t> &pages, uint32_t offset);
    void gather(const std::vector<uint64_t> &pages, uint32_t offset, void *data, uint32_t bytes, bool to_host);

    Board &board;
    int small_lists = 0;  // entries a PRP list page may use before it chains; 0 = all

  private:
    struct Queue {
        uint64_t sq = 0, cq = 0;
        uint16_t sq_entries = 0, cq_entries = 0, tail = 0, head = 0, sq_head = 0;
        bool phase = true, valid = false;
    };
    Queue queues[QUEUES];
    std::map<std::pair<int, uint16_t>, Completion> done;
    std::map<std::pair<int, uint16_t>, std::pair<std::vector<uint64_t>, uint32_t>> buffers;
    Completion make_queues(uint16_t id, uint16_t vector);
    uint64_t next_page = Board::HOST_BASE;
    uint16_t next_cid = 1;
};
