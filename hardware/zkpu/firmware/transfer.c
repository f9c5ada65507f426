// SPDX-License-Identifier: MIT OR Apache-2.0
// Host data by PRP entries (Base Specification 2.0, section 4.1.1). Pages are 4 KiB.
#include "device.h"

enum { CACHE = 32, HOPS_MAX = 4 };
static uint64_t entries[CACHE];

uint16_t walk_start(struct walk *walk, const struct command *command, uint32_t length) {
  memset(walk, 0, sizeof *walk);
  uint64_t prp1 = command->prp1, prp2 = command->prp2;
  if (prp1 & 3) return PRP_OFFSET_INVALID;
  walk->address = prp1;
  walk->room = PAGE - ((uint32_t)prp1 & (PAGE - 1));
  uint32_t rest = length > walk->room ? length - walk->room : 0;
  walk->pages = (rest + PAGE - 1) >> 12;
  walk->listed = walk->pages > 1;
  walk->next = prp2;
  if (walk->pages == 1 && (prp2 & (PAGE - 1))) return PRP_OFFSET_INVALID;
  if (walk->listed && (prp2 & 7)) return PRP_OFFSET_INVALID;
  return SUCCESS;
}

// Reads list entries ahead; the last entry of a list page points to the next list when more pages follow than it holds.
static uint16_t list_fill(struct walk *walk) {
  for (;;) {
    uint32_t here = (PAGE - ((uint32_t)walk->next & (PAGE - 1))) >> 3;
    bool chained = walk->pages > here;
    uint32_t usable = chained ? here - 1 : walk->pages;
    if (usable == 0) {
      // Each hop yields at least 511 entries in a sane list; a circle of empty lists ends here.
      if (++walk->hops > HOPS_MAX) return INVALID_FIELD;
      if (!copy(SPACE_FIRMWARE, address_of(entries), SPACE_HOST, walk->next, 8)) return DATA_TRANSFER_ERROR;
      if (entries[0] & 7) return PRP_OFFSET_INVALID;
      walk->next = entries[0];
      continue;
    }
    uint32_t take = usable < CACHE ? usable : CACHE;
    if (!copy(SPACE_FIRMWARE, address_of(entries), SPACE_HOST, walk->next, take << 3)) return DATA_TRANSFER_ERROR;
    walk->next += take << 3;
    walk->cached = (uint8_t)take;
    walk->used = 0;
    return SUCCESS;
  }
}

static uint16_t walk_page(struct walk *walk) {
  if (walk->pages == 0) return INTERNAL_ERROR;
  uint64_t address = walk->next;
  if (walk->listed) {
    if (walk->used == walk->cached) {
      uint16_t status = list_fill(walk);
      if (status) return status;
    }
    address = entries[walk->used++];
  }
  if (address & (PAGE - 1)) return PRP_OFFSET_INVALID;
  walk->pages--;
  walk->address = address;
  walk->room = PAGE;
  return SUCCESS;
}

// Moves `length` bytes in the direction of `to_host`; zeros come from SPACE_ZERO.
static uint16_t walk_move(struct walk *walk, bool to_host, enum space space, uint64_t address, uint32_t length) {
  while (length) {
    if (walk->room == 0) {
      uint16_t status = walk_page(walk);
      if (status) return status;
    }
    uint32_t bytes = length < walk->room ? length : walk->room;
    bool moved = to_host ? copy(SPACE_HOST, walk->address, space, address, bytes)
                         : copy(space, address, SPACE_HOST, walk->address, bytes);
    if (!moved) {
      counters.transfer_errors++;
      return DATA_TRANSFER_ERROR;
    }
    if (to_host) counters.host_written += bytes;
    else counters.host_read += bytes;
    SYSTEM_WATCHDOG = 0;
    walk->address += bytes;
    walk->room -= bytes;
    address += bytes;
    length -= bytes;
  }
  return SUCCESS;
}

uint16_t walk_to_host(struct walk *walk, enum space from, uint64_t src, uint32_t length) {
  return walk_move(walk, true, from, src, length);
}

uint16_t walk_from_host(struct walk *walk, enum space to, uint64_t dst, uint32_t length) {
  return walk_move(walk, false, to, dst, length);
}
