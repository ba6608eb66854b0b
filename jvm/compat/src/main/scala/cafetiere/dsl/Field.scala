// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import scala.language.implicitConversions

/** An argument that may be left out. A plain value is taken where a Field is asked for. What is left
  * out does not appear in the prototxt, and the engine takes the default.
  */
sealed abstract class Field[+T] {

  /** The value, if there is one. */
  def toOption: Option[T]
}

/** An argument that was left out. */
case object Unset extends Field[Nothing] {
  def toOption: Option[Nothing] = None
}

/** An argument that was given. */
final case class Value[+T](value: T) extends Field[T] {
  def toOption: Option[T] = Some(value)
}

object Field {
  implicit def lift[T](value: T): Field[T] = Value(value)

  /** Lets a decimal stand for a float, as Caffe's files do; an Int does so by itself. */
  implicit def liftDouble(value: Double): Field[Float] = Value(value.toFloat)
}

/** The phases of a net. */
object Phase {
  val Train: caffe.Caffe.Phase = caffe.Caffe.Phase.TRAIN
  val Test: caffe.Caffe.Phase = caffe.Caffe.Phase.TEST
}
