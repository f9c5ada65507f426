// The two curves whose proofs contracts verify: points and their encodings, for tests that run over both.

import { bls12_381 } from "@noble/curves/bls12-381";
import { bn254 } from "@noble/curves/bn254";

const word = (number, bytes) => number.toString(16).padStart(2 * bytes, "0");

/** A curve by the name that snarkjs has for it. */
class Curve {
  constructor({ name, snarkjsName, library, coordinateBytes, imaginaryFirst, b2 }) {
    const { Fp, Fp2, Fr } = library.fields;
    Object.assign(this, { name, snarkjsName, coordinateBytes, imaginaryFirst, b2, Fp, Fp2, Fr });
    this.G1 = library.G1.ProjectivePoint;
    this.G2 = library.G2.ProjectivePoint;
    /** Order of the groups. */
    this.r = Fr.ORDER;
    /** Order of the base field. */
    this.p = Fp.ORDER;
  }

  /** Bytes of an encoded proof. */
  get proofBytes() {
    return 8 * this.coordinateBytes;
  }

  /** A point times a scalar, which may be zero. */
  multiply(point, scalar) {
    const reduced = this.Fr.create(scalar);
    return reduced === 0n ? point.add(point.negate()) : point.multiply(reduced);
  }

  /** The coordinates of a point in the order of the precompiles; zeros for infinity. */
  coordinates(point) {
    const inSecondGroup = point instanceof this.G2;
    if (point.is0()) return Array(inSecondGroup ? 4 : 2).fill(0n);
    const { x, y } = point.toAffine();
    if (!inSecondGroup) return [x, y];
    const parts = ({ c0, c1 }) => (this.imaginaryFirst ? [c1, c0] : [c0, c1]);
    return [...parts(x), ...parts(y)];
  }

  /** The eight coordinates of a proof: of A, B and C. */
  proofCoordinates({ a, b, c }) {
    return [a, b, c].flatMap((point) => this.coordinates(point));
  }

  /** Coordinates in hex, without a prefix. */
  hex(coordinates) {
    return coordinates.map((coordinate) => word(coordinate, this.coordinateBytes)).join("");
  }

  /** The arguments of `verifyProof` for a proof's coordinates and its inputs. */
  verifyArguments(coordinates, inputs) {
    if (this.name === "bls12-381") return [`0x${this.hex(coordinates)}`, inputs];
    const [ax, ay, bx1, bx0, by1, by0, cx, cy] = coordinates;
    return [[ax, ay], [[bx1, bx0], [by1, by0]], [cx, cy], inputs];
  }

  /** The arguments of `verifyProofs` for proofs with their inputs: a list of `{ coordinates, inputs }`. */
  batchArguments(entries) {
    if (this.name === "bls12-381") {
      return [`0x${entries.map((entry) => this.hex(entry.coordinates)).join("")}`, entries.flatMap((entry) => entry.inputs)];
    }
    return [entries.map((entry) => entry.coordinates), entries.map((entry) => entry.inputs)];
  }

  /** A point as snarkjs writes it. */
  pointJson(point) {
    const inSecondGroup = point instanceof this.G2;
    if (point.is0()) return inSecondGroup ? [["0", "0"], ["1", "0"], ["0", "0"]] : ["0", "1", "0"];
    const { x, y } = point.toAffine();
    const element = (it) => (inSecondGroup ? [`${it.c0}`, `${it.c1}`] : `${it}`);
    return [element(x), element(y), inSecondGroup ? ["1", "0"] : "1"];
  }

  /** A proof as snarkjs writes it. */
  proofJson({ a, b, c }) {
    const [pi_a, pi_b, pi_c] = [a, b, c].map((point) => this.pointJson(point));
    return { pi_a, pi_b, pi_c, protocol: "groth16", curve: this.snarkjsName };
  }

  /** The points of a proof that snarkjs or Proofmill wrote. */
  proofOfJson({ pi_a, pi_b, pi_c }) {
    const [first, second] = [([x, y]) => ({ x: BigInt(x), y: BigInt(y) }), ([x, y]) => ({ x: element(x), y: element(y) })];
    const element = ([c0, c1]) => ({ c0: BigInt(c0), c1: BigInt(c1) });
    return { a: this.G1.fromAffine(first(pi_a)), b: this.G2.fromAffine(second(pi_b)), c: this.G1.fromAffine(first(pi_c)) };
  }

  /** A point of the second group's curve that is outside the subgroup: the first with a small x. */
  outsideG2() {
    const { Fp2, G2 } = this;
    for (let count = 1n; ; ++count) {
      const x = Fp2.create({ c0: count, c1: 1n });
      try {
        const point = G2.fromAffine({ x, y: Fp2.sqrt(Fp2.add(Fp2.mul(Fp2.sqr(x), x), this.b2)) });
        if (!this.timesOrder(point).is0()) return point;
      } catch {
        // Not a square: the next x.
      }
    }
  }

  /** A point of the first group's curve that is outside the subgroup; over BN254 there is none. */
  outsideG1() {
    if (this.name === "bn254") return null;
    const { Fp, G1 } = this;
    for (let x = 1n; ; ++x) {
      try {
        const point = G1.fromAffine({ x, y: Fp.sqrt(Fp.create(x ** 3n + 4n)) });
        if (!this.timesOrder(point).is0()) return point;
      } catch {
        // Not a square: the next x.
      }
    }
  }

  /** The point times the order of the groups, which the library's own multiplication refuses. */
  timesOrder(point) {
    let product = point.add(point.negate());
    for (const bit of this.r.toString(2)) {
      product = product.add(product);
      if (bit === "1") product = product.add(point);
    }
    return product;
  }
}

const { Fp2: blsFp2 } = bls12_381.fields;
const { Fp2: bnFp2 } = bn254.fields;

export const curves = [
  new Curve({ name: "bn254", snarkjsName: "bn128", library: bn254, coordinateBytes: 32, imaginaryFirst: true,
    b2: bnFp2.mul(bnFp2.inv(bnFp2.create({ c0: 9n, c1: 1n })), 3n) }),
  new Curve({ name: "bls12-381", snarkjsName: "bls12381", library: bls12_381, coordinateBytes: 64, imaginaryFirst: false,
    b2: blsFp2.create({ c0: 4n, c1: 4n }) }),
];
