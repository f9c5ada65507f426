// SPDX-License-Identifier: MIT OR Apache-2.0
#include "host.h"

uint64_t Host::allocate(uint64_t bytes) {
    const uint64_t at = next_page;
    next_page += (bytes + 4095) / 4096 * 4096;
    // Data pages are reused in a circle; the first 256 KiB hold queues, which live until the next enable().
    if (next_page > Board::HOST_BASE + Board::HOST_BYTES) {
        next_page = Board::HOST_BASE + (256 << 10);
        return allocate(bytes);
    }
    return at;
}

bool Host::disable() {
    board.write32(Board::REG_CC, 0);
    for (int i = 0; i < 4000; i++) {
        if (!(board.read32(Board::REG_CSTS) & 1)) return true;
        board.tick(100);
    }
    return false;
}

bool Host::enable_with(uint16_t entries, uint32_t cc) {
    if (!disable()) return false;
    for (Queue &queue : queues) queue = Queue{};
    done.clear();
    buffers.clear();
    next_page = Board::HOST_BASE;
    Queue &admin = queues[0];
    admin.sq = allocate(64 * entries);
    admin.cq = allocate(16 * entries);
    memset(board.host(admin.cq), 0, 16 * entries);
    admin.sq_entries = admin.cq_entries = entries;
    admin.valid = true;
    board.write32(Board::REG_AQA, (entries - 1) << 16 | (entries - 1));
    board.write64(Board::REG_ASQ, admin.sq);
    board.write64(Board::REG_ACQ, admin.cq);
    board.write32(Board::REG_CC, cc);
    for (int i = 0; i < 4000; i++) {
        const uint32_t csts = board.read32(Board::REG_CSTS);
        if (csts & 2) return false;
        if (csts & 1) return true;
        board.tick(100);
    }
    return false;
}

Completion Host::create_queues(uint16_t id, uint16_t sq_entries, uint16_t cq_entries, uint16_t vector) {
    Queue &queue = queues[id];
    queue = Queue{};
    queue.sq = allocate(64 * sq_entries);
    queue.cq = allocate(16 * cq_entries);
    memset(board.host(queue.cq), 0, 16 * cq_entries);
    queue.sq_entries = sq_entries;
    queue.cq_entries = cq_entries;
    return make_queues(id, vector);
}

Completion Host::make_queues(uint16_t id, uint16_t vector) {
    Queue &queue = queues[id];
    Command command{.opcode = 5, .prp1 = queue.cq};
    command.cdw10 = uint32_t(queue.cq_entries - 1) << 16 | id;
    command.cdw11 = uint32_t(vector) << 16 | 3;
    Completion completion = run(0, command);
    if (!completion.ok()) return completion;
    command = Command{.opcode = 1, .prp1 = queue.sq};
    command.cdw10 = uint32_t(queue.sq_entries - 1) << 16 | id;
    command.cdw11 = uint32_t(id) << 16 | 1;
    completion = run(0, command);
    queue.valid = completion.ok();
    return completion;
}

bool Host::renew_queues(uint16_t id, uint16_t vector) {
    const Queue old = queues[id];
    if (!old.valid) return false;
    for (uint8_t opcode : {0, 4}) {  // the submission queue first: a completion queue in use is not deleted
        Command command{.opcode = opcode};
        command.cdw10 = id;
        if (!run(0, command).ok()) return false;
    }
    std::erase_if(done, [id](const auto &entry) { return entry.first.first == id; });
    Queue &queue = queues[id];
    queue = Queue{};
    queue.sq = old.sq;
    queue.cq = old.cq;
    queue.sq_entries = old.sq_entries;
    queue.cq_entries = old.cq_entries;
    memset(board.host(queue.cq), 0, 16 * queue.cq_entries);
    return make_queues(id, vector).ok();
}

uint16_t Host::submit(int q, Command command) {
    while (done.count({q, next_cid}) || next_cid == 0) next_cid++;
    command.cid = next_cid++;
    submit_as(q, command);
    return command.cid;
}

void Host::submit_as(int q, const Command &command) {
    Queue &queue = queues[q];
    while ((queue.tail + 1) % queue.sq_entries == queue.sq_head) {  // full: completions move the head
        poll();
        board.tick(50);
    }
    memcpy(board.host(queue.sq + 64 * queue.tail), &command, 64);
    queue.tail = (queue.tail + 1) % queue.sq_entries;
    board.write32(0x1000 + 8 * q, queue.tail);
}

void Host::describe(Command &command, const std::vector<uint64_t> &pages, uint32_t offset) {
    command.prp1 = pages[0] + offset;
    command.prp2 = 0;
    if (pages.size() == 2) command.prp2 = pages[1];
    if (pages.size() <= 2) return;
    // The first list may start inside its page: then it chains after `small_lists` entries. Later lists fill their pages.
    const uint32_t capacity = small_lists ? small_lists : 512;
    uint64_t list = allocate(4096) + (512 - capacity) * 8;
    command.prp2 = list;
    size_t at = 1;
    uint32_t room = capacity;
    while (at < pages.size()) {
        if (room == 1 && pages.size() - at > 1) {
            const uint64_t next = allocate(4096);
            memcpy(board.host(list), &next, 8);
            list = next;
            room = 512;
            continue;
        }
        memcpy(board.host(list), &pages[at++], 8);
        list += 8;
        room--;
    }
}

void Host::gather(const std::vector<uint64_t> &pages, uint32_t offset, void *data, uint32_t bytes, bool to_host) {
    auto *at = static_cast<uint8_t *>(data);
    for (uint64_t page : pages) {
        const uint32_t part = std::min(bytes, 4096 - offset);
        if (to_host) memcpy(board.host(page + offset), at, part);
        else memcpy(at, board.host(page + offset), part);
        at += part;
        bytes -= part;
        offset = 0;
    }
}

uint16_t Host::submit_data(int q, Command command, const void *data, uint32_t bytes, uint32_t offset) {
    std::vector<uint64_t> pages((offset + bytes + 4095) / 4096);
    const uint64_t first = allocate(4096 * pages.size());
    for (size_t i = 0; i < pages.size(); i++) pages[i] = first + 4096 * (pages.size() - 1 - i);  // scattered: reversed
    if (data) gather(pages, offset, const_cast<void *>(data), bytes, true);
    if (!pages.empty()) describe(command, pages, offset);
    const uint16_t cid = submit(q, command);
    buffers[{q, cid}] = {pages, offset};
    return cid;
}

void Host::poll() {
    for (int q = 0; q < QUEUES; q++) {
        Queue &queue = queues[q];
        if (!queue.cq) continue;
        bool moved = false;
        for (;;) {
            Completion c;
            memcpy(&c, board.host(queue.cq + 16 * queue.head), 16);
            if ((c.status & 1) != queue.phase) break;
            c.status >>= 1;
            if (c.sq_id < QUEUES) queues[c.sq_id].sq_head = c.sq_head;
            done[{c.sq_id, c.cid}] = c;
            queue.head = (queue.head + 1) % queue.cq_entries;
            if (queue.head == 0) queue.phase = !queue.phase;
            moved = true;
        }
        if (moved) board.write32(0x1004 + 8 * q, queue.head);
    }
}

std::optional<Completion> Host::wait(int q, uint16_t cid, uint64_t clocks) {
    const uint64_t end = board.now() + clocks;
    do {
        poll();
        const auto found = done.find({q, cid});
        if (found != done.end()) {
            const Completion c = found->second;
            done.erase(found);
            return c;
        }
        board.tick(40);
    } while (board.now() < end);
    return {};
}

Completion Host::run(int q, const Command &command) {
    const auto c = wait(q, submit(q, command));
    return c ? *c : Completion{0, 0, 0, 0, 0, 0xffff};
}
Completion Host::write(int q, Command command, const void *data, uint32_t bytes, uint32_t offset) {
    const auto c = wait(q, submit_data(q, command, data, bytes, offset));
    return c ? *c : Completion{0, 0, 0, 0, 0, 0xffff};
}
Completion Host::read(int q, Command command, void *data, uint32_t bytes, uint32_t offset) {
    const uint16_t cid = submit_data(q, command, nullptr, bytes, offset);
    const auto c = wait(q, cid);
    if (!c) return Completion{0, 0, 0, 0, 0, 0xffff};
    if (c->ok()) gather(buffers[{q, cid}].first, offset, data, bytes, false);
    return *c;
}
