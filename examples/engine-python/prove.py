"""Proves a witness with a running engine: prove.py CIRCUIT WITNESS PROOF PUBLIC"""

import os
import pathlib
import sys
import time
import uuid

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).parent / "generated"))
from proofmill.engine.v1 import engine_pb2_grpc, job_pb2  # noqa: E402

CHUNK = 1 << 20


def parts(job, witness):
    """The job, then its witness."""
    yield job_pb2.SubmitStreamRequest(job=job)
    for start in range(0, len(witness), CHUNK):
        yield job_pb2.SubmitStreamRequest(chunk=witness[start : start + CHUNK])


def submit(engine, circuit, witness):
    """Submits the job, again by the same request id while the engine has no room for it."""
    job = job_pb2.SubmitRequest(
        client="python",
        request_id=uuid.uuid4().hex,
        priority=job_pb2.PRIORITY_NORMAL,
        partitions=[
            job_pb2.Partition(
                circuit=circuit,
                streamed=job_pb2.StreamedWitness(bytes=len(witness)),
            )
        ],
    )
    while True:
        try:
            return engine.SubmitStream(parts(job, witness))
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            trailers = dict(error.trailing_metadata())
            time.sleep(int(trailers.get("grpc-retry-pushback-ms", 1000)) / 1000)


def main():
    circuit, witness, proof, public = sys.argv[1:]
    address = os.environ.get("PROOFMILL_ENGINE", "unix:.proofmill/engine/engine.sock")
    # gRPC for Python takes a socket's path for the host, which HTTP/2 has no room for.
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(address, options) as channel:
        engine = engine_pb2_grpc.ProvingEngineStub(channel)
        submitted = submit(engine, circuit, pathlib.Path(witness).read_bytes())
        result = engine.Await(job_pb2.AwaitRequest(job=submitted.job), timeout=3600)
    if result.state != job_pb2.JOB_STATE_DONE:
        state = job_pb2.JobState.Name(result.state)
        sys.exit(f"job {result.job}: {state} {result.failure}")
    pathlib.Path(proof).write_text(result.proofs[0].proof_json)
    pathlib.Path(public).write_text(result.proofs[0].public_json)
    print(f"{proof}, {public}: job {result.job}")


if __name__ == "__main__":
    main()
