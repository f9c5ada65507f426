// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {BitcoinDifficulty} from "./BitcoinDifficulty.sol";
import {IGroth16Verifier} from "./IGroth16Verifier.sol";
import {ProofBatch} from "./ProofBatch.sol";

/// @title A light client of Bitcoin's main chain, advanced by proofs
/// @notice Each proof covers a chunk: a run of consecutive headers, each of which names the one before and meets the target
/// that its `bits` encode. The contract adds what the proof does not say: that the chunk follows a header it knows, that the
/// bits are those which the network demands at that height, and which of several chains has the most work.
///
/// A header is known to the contract only as the end of a chunk. Chains that part from each other are known side by side; the
/// tip is the known header with the most work since the anchor, and of two with the same work the one that came first.
///
/// Hashes are in the order in which double SHA-256 gives them, as headers refer to each other. Explorers print them reversed.
///
/// Not checked, because neither proof nor contract sees it: a header's time against those before it and against the clock, its
/// version, and the block's transactions. A chain that breaks only those rules costs as much work as a valid one.
///
/// The contract has no owner and cannot be changed.
contract HeaderChain {
    using ProofBatch for ProofBatch.Gathered;

    /// @notice A run of headers and its proof.
    /// @param prevHash Hash of the header before the first of the chunk.
    /// @param lastHash Hash of the chunk's last header.
    /// @param bits Compact target of each header, in the chain's order.
    /// @param proof The proof, as `IGroth16Verifier` takes it.
    /// @param headers The chunk's last header, serialised: 80 bytes. If the height of one of the chunk's headers is a multiple
    /// of 2016 (other than 0), the headers from the one before that header on, or from that header on if it is the chunk's
    /// first: the times in them, which the proof does not show, decide the new difficulty.
    struct Chunk {
        bytes32 prevHash;
        bytes32 lastHash;
        uint32[] bits;
        bytes proof;
        bytes headers;
    }

    /// @notice The header that the chain begins after. Whoever deploys the contract vouches for it.
    /// @param hash Its hash; zero for a chain that begins with a genesis block. Which one is not checked: only work distinguishes
    /// Bitcoin's, so until the chain has much of it the tip says little. An anchor near the network's tip is better.
    /// @param nextHeight Height of the header after it; 0 for a chain that begins with the genesis block.
    /// @param bits Its bits; 0x1d00ffff before the genesis block.
    /// @param time Its time, which counts only if `nextHeight` is a multiple of 2016; the genesis block's, 1231006505, before it.
    /// @param periodStart Time of the first header of its difficulty period, the last one whose height is a multiple of 2016;
    /// the genesis block's, 1231006505, before it.
    struct Anchor {
        bytes32 hash;
        uint32 nextHeight;
        uint32 bits;
        uint32 time;
        uint32 periodStart;
    }

    /// @notice The state of a chain at a known header. One storage slot.
    /// @param work Work of the headers after the anchor up to this one: the expected number of hashes.
    /// @param nextHeight Height of the header after this one.
    /// @param bits Bits of this header; never zero.
    /// @param time Time of this header.
    /// @param periodStart Time of the first header of this header's difficulty period.
    struct State {
        uint128 work;
        uint32 nextHeight;
        uint32 bits;
        uint32 time;
        uint32 periodStart;
    }

    /// @notice A known header: the end of a chunk, or the anchor.
    /// @param state The chain's state there.
    /// @param parent End of the chunk before; zero for the anchor.
    struct Tip {
        State state;
        bytes32 parent;
    }

    /// @notice Length of a serialised header.
    uint256 private constant HEADER_BYTES = 80;

    /// @notice Public inputs before the bits: two halves of two hashes, and the count.
    uint256 private constant FIXED_INPUTS = 5;

    /// @notice Most slots that a circuit may have. It is below 2016: the difficulty changes at most once in a chunk. The code of a
    /// verifier over BLS12-381 has room for 115.
    uint256 public constant MAX_SLOTS = 1024;

    /// @notice Most chunks that `isCanonical` goes back: at about 4,500 gas each, within what a transaction may take (EIP-7825).
    uint256 public constant MAX_WALK = 2048;

    /// @notice Time of the genesis block.
    uint32 private constant GENESIS_TIME = 1231006505;

    /// @notice Verifier of the circuit's proofs.
    IGroth16Verifier public immutable verifier;

    /// @notice Most headers that one proof covers: the circuit's slots.
    uint256 public immutable slots;

    /// @notice Hash of the header that the chain begins after.
    bytes32 public immutable anchor;

    /// @notice Hash of the known header with the most work.
    bytes32 public tip;

    /// @dev Known headers by their hash. An entry whose bits are zero is unknown.
    mapping(bytes32 hash => Tip known) private _tips;

    /// @notice A chunk was accepted.
    /// @param lastHash Hash of its last header, now known.
    /// @param prevHash Hash of the header before it.
    /// @param firstHeight Height of its first header.
    /// @param lastHeight Height of its last header.
    /// @param time Time of its last header.
    /// @param merkleRoot Root of the transactions of its last header's block. A proof by it that a transaction is in the block must
    /// bound the tree's height and refuse leaves of 64 bytes (CVE-2017-12842), and the chunk may be on a side branch: see
    /// `isCanonical`, and wait for work on top.
    /// @param work Work of the chain from the anchor to its last header.
    event ChunkAccepted(
        bytes32 indexed lastHash,
        bytes32 indexed prevHash,
        uint32 firstHeight,
        uint32 lastHeight,
        uint32 time,
        bytes32 merkleRoot,
        uint128 work
    );

    /// @notice Another header has the most work. Where `previous` is not the accepted chunk's `prevHash`, the chain was
    /// reorganised, or the same chain was cut into chunks at other heights.
    /// @param tip Hash of the header with the most work.
    /// @param previous Hash of the one that had it before.
    /// @param height Height of the header with the most work.
    event TipChanged(bytes32 indexed tip, bytes32 indexed previous, uint32 height);

    /// @notice There is no contract at the verifier's address, or one that does not verify several proofs at once.
    /// @param verifier The address.
    error NoVerifier(address verifier);

    /// @notice Passed on from the verifier: it had too little gas to say anything about the proofs.
    error NotEnoughGas();

    /// @notice The circuit's slots are none or more than `MAX_SLOTS`.
    /// @param slots The slots given.
    error BadSlots(uint256 slots);

    /// @notice The anchor contradicts itself: the hash must be zero before the genesis block, and there only, with the genesis
    /// block's bits and time; the bits must be the shortest form of a target that is not above the network's limit; and the first
    /// header of a period has the time with which the period starts.
    error BadAnchor();

    /// @notice There are no headers, or more than the circuit has slots.
    /// @param count Headers in the chunk.
    /// @param slots The circuit's slots.
    error BadCount(uint256 count, uint256 slots);

    /// @notice The header that the chunk follows is not known.
    /// @param prevHash Its hash.
    error UnknownParent(bytes32 prevHash);

    /// @notice The chunk's last header is known already: the chunk was accepted before.
    /// @param lastHash Its hash.
    error AlreadyKnown(bytes32 lastHash);

    /// @notice A header's bits are not those that the network demands.
    /// @param height The header's height.
    /// @param expected Bits that the network demands.
    /// @param given Bits of the header.
    error WrongBits(uint256 height, uint32 expected, uint32 given);

    /// @notice The chunk comes with too few or too many bytes of serialised headers.
    /// @param expected Bytes that the chunk needs: 80 unless the difficulty changes in it.
    /// @param given Bytes given.
    error WrongHeadersLength(uint256 expected, uint256 given);

    /// @notice A serialised header is not the one that the header after it, or the chunk's last hash, names.
    /// @param index Its place in `headers`, from 0.
    /// @param expected Hash that is named.
    /// @param found Hash of the serialised header.
    error WrongHeader(uint256 index, bytes32 expected, bytes32 found);

    /// @notice The verifier does not accept the proof.
    /// @param lastHash Hash of the chunk's last header.
    error BadProof(bytes32 lastHash);

    /// @notice The verifier does not accept the proofs of several chunks. Which of them are invalid, it does not say.
    /// @param count How many proofs it was given.
    error BadProofs(uint256 count);

    /// @notice The work does not fit in 128 bits, which no real chain comes near.
    /// @param work The work.
    error WorkOverflow(uint256 work);

    /// @notice A header is not known.
    /// @param hash Its hash.
    error UnknownTip(bytes32 hash);

    /// @notice The tip is the anchor before the genesis block, which has no height.
    error NoHeaders();

    /// @notice The walk along the chain reached its bound.
    /// @param hash Hash of the header that was looked for.
    /// @param steps Chunks gone back.
    error TooFarBack(bytes32 hash, uint256 steps);

    /// @notice Begins a chain after an anchor.
    /// @param verifier_ Verifier of the circuit's proofs.
    /// @param slots_ The circuit's slots: the most headers that a proof covers.
    /// @param anchor_ The header that the chain begins after.
    constructor(IGroth16Verifier verifier_, uint256 slots_, Anchor memory anchor_) {
        if (!ProofBatch.isVerifier(verifier_)) revert NoVerifier(address(verifier_));
        if (slots_ == 0 || slots_ > MAX_SLOTS) revert BadSlots(slots_);
        if ((anchor_.hash == 0) != (anchor_.nextHeight == 0)) revert BadAnchor();
        uint256 target = BitcoinDifficulty.target(anchor_.bits);
        if (target > BitcoinDifficulty.POW_LIMIT || BitcoinDifficulty.compact(target) != anchor_.bits) revert BadAnchor();
        bool isGenesis = anchor_.bits == BitcoinDifficulty.POW_LIMIT_BITS && anchor_.time == GENESIS_TIME
            && anchor_.periodStart == GENESIS_TIME;
        if (anchor_.nextHeight == 0 && !isGenesis) revert BadAnchor();
        if (anchor_.nextHeight % BitcoinDifficulty.PERIOD == 1 && anchor_.time != anchor_.periodStart) revert BadAnchor();
        verifier = verifier_;
        slots = slots_;
        anchor = anchor_.hash;
        tip = anchor_.hash;
        _tips[anchor_.hash].state = State({
            work: 0,
            nextHeight: anchor_.nextHeight,
            bits: anchor_.bits,
            time: anchor_.time,
            periodStart: anchor_.periodStart
        });
    }

    /// @notice Accepts a chunk that follows a known header; reverts with the reason otherwise.
    /// @param chunk The chunk. It need not follow the tip.
    function advance(Chunk calldata chunk) external {
        _append(chunk);
        uint256[] memory inputs = new uint256[](FIXED_INPUTS + slots);
        _writeInputs(chunk, inputs, 0);
        if (!verifier.verifyProof(chunk.proof, inputs)) revert BadProof(chunk.lastHash);
    }

    /// @notice Accepts several chunks, all or none. A later one may follow an earlier one. Chunks whose end is known are passed
    /// over: anyone may have them accepted first, and the rest must not fail for that. Reverts with `AlreadyKnown` if all are known.
    /// The proofs are verified in one batch, which costs less for each; `BadProofs` does not say which of them is invalid.
    /// @param chunks The chunks, in the order in which they are to be accepted.
    function advanceMany(Chunk[] calldata chunks) external {
        uint256 count = chunks.length;
        if (count == 0) return;
        ProofBatch.Gathered memory batch = ProofBatch.withRoom(count, FIXED_INPUTS + slots);
        bytes32 last;
        for (uint256 index = 0; index < count; ++index) {
            Chunk calldata chunk = chunks[index];
            if (_tips[chunk.lastHash].state.bits != 0) continue;
            _append(chunk);
            last = chunk.lastHash;
            (bool taken, uint256 start) = batch.add(chunk.proof);
            if (!taken) revert BadProof(last);
            _writeInputs(chunk, batch.inputs, start);
        }
        if (batch.count == 0) revert AlreadyKnown(chunks[count - 1].lastHash);
        if (batch.verify(verifier)) return;
        if (batch.count == 1) revert BadProof(last);
        revert BadProofs(batch.count);
    }

    /// @notice Height of the tip. Reverts with `NoHeaders` as long as the tip is the anchor before the genesis block.
    /// @return height The height.
    function tipHeight() external view returns (uint32 height) {
        uint32 next = _tips[tip].state.nextHeight;
        if (next == 0) revert NoHeaders();
        height = next - 1;
    }

    /// @notice Whether a header is known: the anchor or the end of an accepted chunk.
    /// @param hash The header's hash.
    function known(bytes32 hash) external view returns (bool) {
        return _tips[hash].state.bits != 0;
    }

    /// @notice What is known of a header. Reverts with `UnknownTip` if it is not known.
    /// @param hash The header's hash.
    /// @return found Its state, and the end of the chunk before.
    function tipOf(bytes32 hash) external view returns (Tip memory found) {
        found = _tips[hash];
        if (found.state.bits == 0) revert UnknownTip(hash);
    }

    /// @notice Whether a header is in the chain that ends with the tip, as the end of a chunk. An unknown header is not.
    /// Reverts with `TooFarBack` if that takes more than `MAX_WALK` chunks to find out; `isAncestor` can be asked in parts.
    /// @param hash The header's hash.
    function isCanonical(bytes32 hash) external view returns (bool) {
        return isAncestor(hash, tip, MAX_WALK);
    }

    /// @notice Whether one known header is found on the way back from another one, from chunk to chunk. A header is in its own
    /// chain. False if either is unknown. If one chain was accepted in chunks that end at different heights, only the ends of the
    /// chunks that came first are on the way: true is always right, false says only that the header is on no such end.
    /// @param hash Hash of the header that is looked for.
    /// @param descendant Hash of the header at the chain's end.
    /// @param steps Most chunks to go back; reverts with `TooFarBack` if more are needed.
    function isAncestor(bytes32 hash, bytes32 descendant, uint256 steps) public view returns (bool) {
        State memory sought = _tips[hash].state;
        if (sought.bits == 0 || _tips[descendant].state.bits == 0) return false;
        bytes32 reached = descendant;
        for (uint256 step = 0; reached != hash; ++step) {
            // Heights fall by at least one with each chunk.
            if (_tips[reached].state.nextHeight <= sought.nextHeight) return false;
            if (step == steps) revert TooFarBack(hash, steps);
            reached = _tips[reached].parent;
        }
        return true;
    }

    /// @dev Checks all of a chunk but its proof, and makes its last header known: the caller verifies the proof, and reverts
    /// if it is invalid. The verifier, which a deployment trusts, is only called to read (`STATICCALL`).
    function _append(Chunk calldata chunk) private {
        uint256 count = chunk.bits.length;
        if (count == 0 || count > slots) revert BadCount(count, slots);
        State memory parent = _tips[chunk.prevHash].state;
        if (parent.bits == 0) revert UnknownParent(chunk.prevHash);
        if (_tips[chunk.lastHash].state.bits != 0) revert AlreadyKnown(chunk.lastHash);
        State memory state = _follow(parent, chunk);
        _tips[chunk.lastHash] = Tip({state: state, parent: chunk.prevHash});
        uint32 height = state.nextHeight - 1;
        emit ChunkAccepted(
            chunk.lastHash,
            chunk.prevHash,
            parent.nextHeight,
            height,
            state.time,
            _merkleRoot(chunk.headers[chunk.headers.length - HEADER_BYTES:]),
            state.work
        );
        bytes32 previous = tip;
        uint128 best = previous == chunk.prevHash ? parent.work : _tips[previous].state.work;
        if (state.work > best) {
            tip = chunk.lastHash;
            emit TipChanged(chunk.lastHash, previous, height);
        }
    }

    /// @dev The state after a chunk whose bits are those that the network demands.
    function _follow(State memory parent, Chunk calldata chunk) private pure returns (State memory state) {
        uint256 count = chunk.bits.length;
        uint256 unchanged = _headersBeforeChange(parent.nextHeight, count);
        _requireBits(chunk.bits, 0, unchanged, parent.bits, parent.nextHeight);
        uint256 work = parent.work + unchanged * BitcoinDifficulty.work(parent.bits);
        uint256 changed = count - unchanged;
        // The last header; or those that change the difficulty, with the one before if it is in the chunk.
        uint256 shown = changed == 0 ? 1 : changed == count ? count : changed + 1;
        _requireHeaders(chunk.headers, shown, chunk.lastHash);
        state.bits = parent.bits;
        state.time = _time(chunk.headers, shown - 1);
        state.periodStart = parent.periodStart;
        if (changed != 0) {
            uint32 lastBefore = changed == count ? parent.time : _time(chunk.headers, 0);
            state.bits = BitcoinDifficulty.retarget(parent.bits, parent.periodStart, lastBefore);
            state.periodStart = _time(chunk.headers, shown - changed);
            _requireBits(chunk.bits, unchanged, count, state.bits, parent.nextHeight);
            work += changed * BitcoinDifficulty.work(state.bits);
        }
        if (work > type(uint128).max) revert WorkOverflow(work);
        // Checked above. The count is at most MAX_SLOTS.
        state.work = uint128(work);
        state.nextHeight = parent.nextHeight + uint32(count);
    }

    /// @dev The number of a chunk's headers before the first whose height is a multiple of the period, other than 0; all of
    /// them if there is no such header.
    function _headersBeforeChange(uint256 height, uint256 count) private pure returns (uint256) {
        uint256 period = BitcoinDifficulty.PERIOD;
        uint256 before = height == 0 ? period : (period - height % period) % period;
        return before < count ? before : count;
    }

    /// @dev Requires the bits from index `from` up to, not including, index `to` to be as expected.
    function _requireBits(uint32[] calldata bits, uint256 from, uint256 to, uint32 expected, uint256 height) private pure {
        for (uint256 index = from; index < to; ++index) {
            if (bits[index] != expected) revert WrongBits(height + index, expected, bits[index]);
        }
    }

    /// @dev Requires serialised headers to be the last `count` of the chain that ends with `lastHash`: each must have the hash that
    /// the one after it names. Which of the chunk's headers they are follows from their number, as the proof says how many headers
    /// the chunk has.
    function _requireHeaders(bytes calldata headers, uint256 count, bytes32 lastHash) private pure {
        if (headers.length != count * HEADER_BYTES) revert WrongHeadersLength(count * HEADER_BYTES, headers.length);
        bytes32 expected = lastHash;
        for (uint256 end = count; end > 0; --end) {
            bytes calldata header = headers[(end - 1) * HEADER_BYTES:end * HEADER_BYTES];
            bytes32 found = sha256(abi.encodePacked(sha256(header)));
            if (found != expected) revert WrongHeader(end - 1, expected, found);
            expected = bytes32(header[4:36]);
        }
    }

    /// @dev The time in the serialised header at an index: four bytes at offset 68, little-endian.
    function _time(bytes calldata headers, uint256 index) private pure returns (uint32) {
        uint256 offset = index * HEADER_BYTES + 68;
        uint32 swapped = uint32(bytes4(headers[offset:offset + 4]));
        swapped = ((swapped & 0x00ff00ff) << 8) | ((swapped >> 8) & 0x00ff00ff);
        return (swapped << 16) | (swapped >> 16);
    }

    /// @dev The root of the transactions in a serialised header: 32 bytes at offset 36.
    function _merkleRoot(bytes calldata header) private pure returns (bytes32) {
        return bytes32(header[36:68]);
    }

    /// @dev Writes the statement's public inputs, from index `start` on, to words that are zero: low and high half of both hashes as
    /// little-endian numbers, the count, and each slot's bits, zero for unused slots.
    function _writeInputs(Chunk calldata chunk, uint256[] memory inputs, uint256 start) private pure {
        uint256 count = chunk.bits.length;
        (inputs[start], inputs[start + 1]) = _halves(chunk.prevHash);
        (inputs[start + 2], inputs[start + 3]) = _halves(chunk.lastHash);
        inputs[start + 4] = count;
        for (uint256 index = 0; index < count; ++index) {
            inputs[start + FIXED_INPUTS + index] = chunk.bits[index];
        }
    }

    /// @dev The low and the high 128 bits of a hash as a little-endian number: its bytes are reversed by swapping neighbours of
    /// 1, 2, 4 and 8 bytes; the two halves need no swap.
    function _halves(bytes32 hash) private pure returns (uint256 low, uint256 high) {
        uint256 number = uint256(hash);
        uint256 mask = type(uint256).max / 0x0101; // 0x00ff00ff…
        number = ((number & mask) << 8) | ((number >> 8) & mask);
        mask = type(uint256).max / 0x00010001;
        number = ((number & mask) << 16) | ((number >> 16) & mask);
        mask = type(uint256).max / 0x0000000100000001;
        number = ((number & mask) << 32) | ((number >> 32) & mask);
        mask = type(uint256).max / 0x00000000000000010000000000000001;
        number = ((number & mask) << 64) | ((number >> 64) & mask);
        // The hash's first 16 bytes, now reversed in the upper half, are the low half.
        low = number >> 128;
        high = uint256(uint128(number));
    }
}
