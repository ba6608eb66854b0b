// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.jcaffe

/** Floats that a blob holds. */
class FloatArray private[jcaffe] (values: Array[Float]) {
  def get(index: Int): Float = if (index < 0) 0 else values(index)

  def set(index: Int, value: Float): Unit = values(index) = value
}

/** A blob of floats. */
class FloatBlob {
  private var values = Array[Float]()

  /** Changes the sizes; false if one is below 1. */
  def reshape(shape: Array[Int]): Boolean = {
    val isFit = shape.forall(_ > 0)
    if (isFit) values = java.util.Arrays.copyOf(values, shape.product)
    isFit
  }

  def reshape(num: Int, channels: Int, height: Int, width: Int): Boolean =
    reshape(Array(num, channels, height, width))

  def count(): Int = values.length

  def cpu_data(): FloatArray = new FloatArray(values)

  /** Copies the values; false for null. */
  def set_cpu_data(data: Array[Float]): Boolean = {
    if (data != null) System.arraycopy(data, 0, values, 0, data.length)
    data != null
  }

  def deallocate(): Unit = values = Array()
}
