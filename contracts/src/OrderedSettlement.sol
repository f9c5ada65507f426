// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.30;

import {IGroth16Verifier} from "./IGroth16Verifier.sol";
import {ProofBatch} from "./ProofBatch.sol";

/// @title Settlement of a rollup's batches, strictly in order
/// @notice A batch is accepted only if it is the next one, starts from the state root that the last one ended with, and its
/// proof is valid. Submitting an accepted batch again changes nothing, so a submitter that does not know whether a transaction
/// went through may send it again.
///
/// A proof's statement has two public inputs: the high and the low 128 bits of the batch's digest,
/// `keccak256(abi.encode(chainId, contract, number, previousRoot, newRoot, dataHash))`, six words of 32 bytes. A proof therefore
/// counts for one batch of one contract on one chain.
contract OrderedSettlement {
    using ProofBatch for ProofBatch.Gathered;

    /// @notice A batch and its proof.
    /// @param number The batch's number.
    /// @param previousRoot State root before the batch.
    /// @param newRoot State root after the batch.
    /// @param dataHash Hash of the batch's data, whose meaning is the rollup's.
    /// @param proof The proof, as `IGroth16Verifier` takes it.
    struct Batch {
        uint64 number;
        bytes32 previousRoot;
        bytes32 newRoot;
        bytes32 dataHash;
        bytes proof;
    }

    /// @notice Public inputs of a proof.
    uint256 private constant INPUTS = 2;

    /// @notice Verifier of the batches' proofs.
    IGroth16Verifier public immutable verifier;

    /// @notice Number of the first batch.
    uint64 public immutable firstBatch;

    /// @notice Who may pause, unpause and hand over these rights.
    address public owner;

    /// @notice Number of the next batch that is accepted. In one storage slot with `owner` and `paused`.
    uint64 public nextBatch;

    /// @notice Whether new batches are refused.
    bool public paused;

    /// @notice Who may become the owner by accepting; zero if nobody.
    address public pendingOwner;

    /// @notice State root after the last accepted batch.
    bytes32 public stateRoot;

    /// @notice Digest of each accepted batch, by number; zero for others.
    mapping(uint64 number => bytes32 digest) public digestOf;

    /// @notice A batch was accepted.
    /// @param number The batch's number.
    /// @param newRoot State root after it.
    /// @param digest The batch's digest.
    event BatchSettled(uint64 indexed number, bytes32 newRoot, bytes32 digest);

    /// @notice New batches are refused from now on.
    /// @param by The owner.
    event Paused(address by);

    /// @notice New batches are accepted again.
    /// @param by The owner.
    event Unpaused(address by);

    /// @notice Somebody may become the owner by accepting.
    /// @param owner The owner.
    /// @param pending Who may become the owner; zero if an offer was withdrawn.
    event OwnershipOffered(address indexed owner, address indexed pending);

    /// @notice There is another owner.
    /// @param previous The owner before; zero at deployment.
    /// @param owner The owner from now on.
    event OwnershipTransferred(address indexed previous, address indexed owner);

    /// @notice There is no contract at the verifier's address, or one that does not verify several proofs at once.
    /// @param verifier The address.
    error NoVerifier(address verifier);

    /// @notice Passed on from the verifier: it had too little gas to say anything about the proofs.
    error NotEnoughGas();

    /// @notice The owner may not be the zero address.
    error NoOwner();

    /// @notice Only the owner may do this.
    /// @param caller Who tried.
    error NotOwner(address caller);

    /// @notice Only the one to whom ownership was offered may accept it.
    /// @param caller Who tried.
    error NotPendingOwner(address caller);

    /// @notice New batches are refused while the contract is paused.
    error IsPaused();

    /// @notice The contract is not paused.
    error NotPaused();

    /// @notice The batch is not the next one.
    /// @param expected Number of the next batch.
    /// @param given Number of the batch.
    error NotNext(uint64 expected, uint64 given);

    /// @notice Another batch with this number was accepted.
    /// @param number The number.
    /// @param settled Digest of the accepted batch.
    /// @param given Digest of the batch.
    error Conflict(uint64 number, bytes32 settled, bytes32 given);

    /// @notice The batch does not start from the current state root.
    /// @param number The batch's number.
    /// @param expected The current state root.
    /// @param given The batch's previous root.
    error WrongRoot(uint64 number, bytes32 expected, bytes32 given);

    /// @notice The verifier does not accept the proof.
    /// @param number The batch's number.
    error BadProof(uint64 number);

    /// @notice The verifier does not accept the proofs of several batches. Which of them are invalid, it does not say.
    /// @param count How many proofs it was given.
    error BadProofs(uint256 count);

    /// @dev Refuses callers other than the owner.
    modifier onlyOwner() {
        if (msg.sender != owner) revert NotOwner(msg.sender);
        _;
    }

    /// @notice Begins at a state root.
    /// @param verifier_ Verifier of the batches' proofs.
    /// @param owner_ Who may pause and unpause.
    /// @param firstBatch_ Number of the first batch.
    /// @param stateRoot_ State root before it.
    constructor(IGroth16Verifier verifier_, address owner_, uint64 firstBatch_, bytes32 stateRoot_) {
        if (!ProofBatch.isVerifier(verifier_)) revert NoVerifier(address(verifier_));
        if (owner_ == address(0)) revert NoOwner();
        verifier = verifier_;
        firstBatch = firstBatch_;
        owner = owner_;
        nextBatch = firstBatch_;
        stateRoot = stateRoot_;
        emit OwnershipTransferred(address(0), owner_);
    }

    /// @notice Accepts the next batch; reverts with the reason otherwise.
    /// @param batch The batch.
    /// @return accepted True if it was accepted now; false if the same batch was accepted before, whatever its proof, and also
    /// while paused.
    function submit(Batch calldata batch) external returns (bool accepted) {
        bytes32 digest;
        (accepted, digest) = _append(batch);
        if (!accepted) return false;
        uint256[] memory inputs = new uint256[](INPUTS);
        _writeInputs(digest, inputs, 0);
        if (!verifier.verifyProof(batch.proof, inputs)) revert BadProof(batch.number);
    }

    /// @notice Accepts several batches in the order given, all or none. Those that were accepted before are passed over. The proofs
    /// are verified together, which costs less for each; `BadProofs` does not say which of them is invalid.
    /// @param batches The batches.
    /// @return accepted How many were accepted now.
    function submitMany(Batch[] calldata batches) external returns (uint256 accepted) {
        ProofBatch.Gathered memory gathered = ProofBatch.withRoom(batches.length, INPUTS);
        uint64 last;
        for (uint256 index = 0; index < batches.length; ++index) {
            Batch calldata batch = batches[index];
            (bool isNew, bytes32 digest) = _append(batch);
            if (!isNew) continue;
            last = batch.number;
            (bool taken, uint256 start) = gathered.add(batch.proof);
            if (!taken) revert BadProof(last);
            _writeInputs(digest, gathered.inputs, start);
        }
        accepted = gathered.count;
        if (accepted == 0 || gathered.verify(verifier)) return accepted;
        if (accepted == 1) revert BadProof(last);
        revert BadProofs(accepted);
    }

    /// @notice Whether a batch was accepted.
    /// @param number The batch's number.
    function settled(uint64 number) external view returns (bool) {
        return number >= firstBatch && number < nextBatch;
    }

    /// @notice Digest of a batch of this contract, whose halves are the public inputs of its proof.
    /// @param number The batch's number.
    /// @param previousRoot State root before the batch.
    /// @param newRoot State root after the batch.
    /// @param dataHash Hash of the batch's data.
    function batchDigest(uint64 number, bytes32 previousRoot, bytes32 newRoot, bytes32 dataHash)
        public
        view
        returns (bytes32)
    {
        return keccak256(abi.encode(block.chainid, address(this), number, previousRoot, newRoot, dataHash));
    }

    /// @notice Refuses new batches from now on. Only for the owner.
    function pause() external onlyOwner {
        if (paused) revert IsPaused();
        paused = true;
        emit Paused(msg.sender);
    }

    /// @notice Accepts batches again. Only for the owner.
    function unpause() external onlyOwner {
        if (!paused) revert NotPaused();
        paused = false;
        emit Unpaused(msg.sender);
    }

    /// @notice Offers ownership, which changes hands when it is accepted. Only for the owner.
    /// @param pending Who may accept; zero withdraws the offer.
    function transferOwnership(address pending) external onlyOwner {
        pendingOwner = pending;
        emit OwnershipOffered(msg.sender, pending);
    }

    /// @notice Accepts ownership. Only for the one to whom it was offered.
    function acceptOwnership() external {
        if (msg.sender != pendingOwner) revert NotPendingOwner(msg.sender);
        address previous = owner;
        owner = msg.sender;
        pendingOwner = address(0);
        emit OwnershipTransferred(previous, msg.sender);
    }

    /// @dev Appends a batch if it is the next, passes over it if it was accepted before, and reverts otherwise. The caller verifies
    /// the proof of a batch that is new, and reverts if it is invalid. The verifier, which a deployment trusts, is only called to
    /// read (`STATICCALL`).
    function _append(Batch calldata batch) private returns (bool isNew, bytes32 digest) {
        digest = batchDigest(batch.number, batch.previousRoot, batch.newRoot, batch.dataHash);
        bytes32 accepted = digestOf[batch.number];
        if (accepted != 0) {
            if (accepted != digest) revert Conflict(batch.number, accepted, digest);
            return (false, digest);
        }
        if (paused) revert IsPaused();
        if (batch.number != nextBatch) revert NotNext(nextBatch, batch.number);
        if (batch.previousRoot != stateRoot) revert WrongRoot(batch.number, stateRoot, batch.previousRoot);
        digestOf[batch.number] = digest;
        nextBatch = batch.number + 1;
        stateRoot = batch.newRoot;
        emit BatchSettled(batch.number, batch.newRoot, digest);
        return (true, digest);
    }

    /// @dev Writes the public inputs of a batch's proof, from index `start` on: the high and the low half of its digest.
    function _writeInputs(bytes32 digest, uint256[] memory inputs, uint256 start) private pure {
        inputs[start] = uint256(digest) >> 128;
        inputs[start + 1] = uint128(uint256(digest));
    }
}
