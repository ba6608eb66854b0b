// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import org.apache.spark.sql.Column
import org.apache.spark.sql.functions.{array, avg}

/** The mean of a column of arrays, element by element. For programs in this package, as FSUtils is.
  *
  * @param n the elements of each
  */
private[caffe] class VectorMean(n: Int) extends Serializable {

  /** The mean of this column, for `agg`. */
  def apply(arrays: Column): Column = array((0 until n).map(i => avg(arrays(i))): _*)
}
