// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe.tools

/** An id and a label, for programs that make keys of SequenceFiles themselves. */
@SerialVersionUID(1L)
class Pair(val first: Any, val second: Any) extends Serializable {
  override def toString: String = s"($first,$second)"
}
