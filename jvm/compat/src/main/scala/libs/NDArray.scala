// SPDX-License-Identifier: Apache-2.0
package libs

import java.io.{InvalidObjectException, ObjectInputStream}
import java.nio.{ByteBuffer, ByteOrder, FloatBuffer}
import java.util.Arrays

import com.esotericsoftware.kryo.DefaultSerializer
import com.esotericsoftware.kryo.serializers.JavaSerializer

/** An n-dimensional array of floats in native memory, in row-major order, or a view of a part of one:
  * views share their values. Serialised as its values alone, by Kryo too, which does not see native memory.
  */
@DefaultSerializer(classOf[JavaSerializer])
class NDArray private (
    private val store: FloatBuffer,
    val shape: Array[Int],
    private val strides: Array[Int],
    private val offset: Int)
    extends java.io.Serializable {

  /** The number of axes. */
  val dim: Int = shape.length
  private val count = shape.product

  /** A view of lowerOffsets(i) until upperOffsets(i) along each axis i. */
  def subarray(lowerOffsets: Array[Int], upperOffsets: Array[Int]): NDArray = {
    val fits = lowerOffsets.length == dim && upperOffsets.length == dim && (0 until dim).forall(i =>
      0 <= lowerOffsets(i) && lowerOffsets(i) <= upperOffsets(i) && upperOffsets(i) <= shape(i))
    if (!fits)
      throw new IllegalArgumentException(
        s"subarray ${text(lowerOffsets)} to ${text(upperOffsets)} is not within ${text(shape)}")
    val size = Array.tabulate(dim)(i => upperOffsets(i) - lowerOffsets(i))
    new NDArray(store, size, strides, at(lowerOffsets))
  }

  /** A view of what lies at an index of an axis; it has one axis less. */
  def slice(axis: Int, index: Int): NDArray = {
    if (axis < 0 || axis >= dim || index < 0 || index >= shape(axis))
      throw new IllegalArgumentException(s"no index $index of axis $axis in ${text(shape)}")
    def without(values: Array[Int]): Array[Int] = values.patch(axis, Nil, 1)
    new NDArray(store, without(shape), without(strides), offset + index * strides(axis))
  }

  /** The value at an index an axis. */
  def get(indices: Array[Int]): Float = store.get(checked(indices))

  /** Replaces the value at an index an axis. */
  def set(indices: Array[Int], value: Float): Unit = store.put(checked(indices), value)

  /** Copies all values, in order, into an array of just as many. */
  def flatCopy(result: Array[Float]): Unit = {
    if (result.length != count)
      throw new IllegalArgumentException(s"${text(shape)} holds $count values, not ${result.length}")
    val from = store.duplicate()
    var next = 0
    eachRun { (begin, length, step) =>
      if (step == 1) {
        from.position(begin)
        from.get(result, next, length)
      } else
        for (i <- 0 until length) result(next + i) = store.get(begin + i * step)
      next += length
    }
  }

  /** The same as flatCopy, as fast. */
  def flatCopySlow(result: Array[Float]): Unit = flatCopy(result)

  /** All values, in order. */
  def toFlat(): Array[Float] = {
    val values = new Array[Float](count)
    flatCopy(values)
    values
  }

  /** A copy of the memory under this array, which is more than its values where it is a view. */
  def getBuffer(): Array[Float] = {
    val values = new Array[Float](store.capacity)
    store.duplicate().rewind().asInstanceOf[FloatBuffer].get(values)
    values
  }

  /** Adds the values of an array of the same shape. */
  def add(that: NDArray): Unit = combine(that)(_ + _)

  /** Subtracts the values of an array of the same shape. */
  def subtract(that: NDArray): Unit = combine(that)(_ - _)

  /** Divides each value. */
  def scalarDivide(v: Float): Unit = eachRun { (begin, length, step) =>
    for (i <- begin until begin + length * step by step) store.put(i, store.get(i) / v)
  }

  override def toString: String = s"NDArray(${text(shape)}: ${toFlat().mkString(", ")})"

  private def combine(that: NDArray)(f: (Float, Float) => Float): Unit = {
    if (!Arrays.equals(shape, that.shape))
      throw new IllegalArgumentException(s"shapes ${text(shape)} and ${text(that.shape)} differ")
    val others = that.toFlat() // also where both are views of the same memory
    var next = 0
    eachRun { (begin, length, step) =>
      for (i <- 0 until length) {
        val place = begin + i * step
        store.put(place, f(store.get(place), others(next + i)))
      }
      next += length
    }
  }

  /** Calls f(begin, length, step) for the values along the last axis, in order. */
  private def eachRun(f: (Int, Int, Int) => Unit): Unit =
    if (dim == 0) f(offset, 1, 1)
    else if (count > 0) {
      def walk(axis: Int, begin: Int): Unit =
        if (axis == dim - 1) f(begin, shape(axis), strides(axis))
        else for (i <- 0 until shape(axis)) walk(axis + 1, begin + i * strides(axis))
      walk(0, offset)
    }

  private def at(indices: Array[Int]): Int = {
    var place = offset
    for (i <- 0 until dim) place += indices(i) * strides(i)
    place
  }

  private def checked(indices: Array[Int]): Int = {
    val fits = indices.length == dim &&
      (0 until dim).forall(i => 0 <= indices(i) && indices(i) < shape(i))
    if (!fits) throw new IndexOutOfBoundsException(s"${text(indices)} is not within ${text(shape)}")
    at(indices)
  }

  private def text(values: Array[Int]): String = values.mkString("(", ", ", ")")

  private def writeReplace(): AnyRef = new NDArray.Form(toFlat(), shape)

  private def readObject(in: ObjectInputStream): Unit =
    throw new InvalidObjectException("NDArray is written as NDArray.Form")
}

object NDArray {

  /** A copy of values.
    *
    * @throws IllegalArgumentException if there are more or fewer than the shape holds, or a size is negative
    */
  def apply(data: Array[Float], shape: Array[Int]): NDArray = {
    requireSizes(shape)
    if (data.length != shape.product)
      throw new IllegalArgumentException(
        s"${data.length} values do not fill shape ${shape.mkString("(", ", ", ")")}")
    val array = zeros(shape)
    array.store.duplicate().put(data)
    array
  }

  /** An array of zeros. */
  def zeros(shape: Array[Int]): NDArray = {
    requireSizes(shape)
    val bytes = shape.map(_.toLong).product * java.lang.Float.BYTES
    if (bytes > Int.MaxValue)
      throw new IllegalArgumentException(s"an array of $bytes bytes; at most ${Int.MaxValue} fit")
    wrap(ByteBuffer.allocateDirect(bytes.toInt).order(ByteOrder.nativeOrder()).asFloatBuffer, shape)
  }

  /** A view of memory that lives elsewhere, such as in the engine: it must outlive the array. */
  def wrap(buffer: FloatBuffer, shape: Array[Int]): NDArray = {
    requireSizes(shape)
    if (buffer.capacity != shape.product)
      throw new IllegalArgumentException(
        s"${buffer.capacity} values do not fill shape ${shape.mkString("(", ", ", ")")}")
    new NDArray(buffer, shape.clone, shape.scanRight(1)(_ * _).tail, 0)
  }

  /** The sum of two arrays of one shape. */
  def plus(v1: NDArray, v2: NDArray): NDArray = {
    val sum = NDArray(v1.toFlat(), v1.shape)
    sum.add(v2)
    sum
  }

  /** Whether the shapes are equal, and no two values are further apart than `tol`. */
  def checkEqual(v1: NDArray, v2: NDArray, tol: Float): Boolean =
    Arrays.equals(v1.shape, v2.shape) &&
      v1.toFlat().zip(v2.toFlat()).forall { case (a, b) => math.abs(a - b) <= tol }

  private def requireSizes(shape: Array[Int]): Unit =
    for (axis <- shape.indices if shape(axis) < 0)
      throw new IllegalArgumentException(
        s"shape ${shape.mkString("(", ", ", ")")} has the size ${shape(axis)} at axis $axis: it must be at least 0")

  private class Form(data: Array[Float], shape: Array[Int]) extends java.io.Serializable {
    private def readResolve(): AnyRef = NDArray(data, shape)
  }
}
