// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import scala.language.implicitConversions

import cafetiere.jcaffe.ForkText
import cafetiere.protobuf
import cafetiere.protobuf.TextFormat
import caffe.Caffe
import caffe.Caffe.LayerParameter

/** What a net, a layer or a solver is made of: a value that equals another whose arguments do, and is
  * printed as prototxt.
  *
  * @tparam P the protobuf message that holds the same
  */
trait Message[P] extends Product {
  private[dsl] def companion: MessageType[_, P]

  /** The protobuf message that holds the same. */
  def toProto: P = companion.write(this)

  /** The prototxt. */
  override def toString: String = toProto.toString
}

/** Reads a kind of message; a companion object of each case class is one. */
abstract class MessageType[M <: Message[P], P] {
  private[dsl] def codec: Codec
  private[dsl] def from(arguments: Array[Any]): M
  private[dsl] def write(message: Message[P]): P = codec.write(message).build().asInstanceOf[P]

  /** The value that a protobuf message holds.
    *
    * @throws IllegalArgumentException if a field is set that has no argument, such as the `layers` of
    *   nets from before 2014; its text names the field
    */
  def of(proto: P): M = from(codec.read(proto.asInstanceOf[protobuf.Message]))

  /** The value of a prototxt.
    *
    * @throws IllegalArgumentException if the text has a fault, whose line it names, or a field without
    *   an argument
    */
  def parse(prototxt: String): M = {
    val builder = codec.builder
    try ForkText.merge("prototxt", prototxt, builder)
    catch {
      case e: TextFormat.ParseException => throw new IllegalArgumentException(e.getMessage, e)
    }
    of(builder.build().asInstanceOf[P])
  }
}

/** A layer: a case class for each type, whose arguments are the fields of LayerParameter and of the
  * type's own message. `top` is the layer's name where it is not given.
  */
trait Layer extends Message[LayerParameter] {
  def name: String
  def bottom: Seq[String]
  def top: Seq[String]
  def include: Seq[NetStateRule]
  def exclude: Seq[NetStateRule]
  def param: Seq[ParamSpec]
}

object Layer {

  /** The layer that a protobuf message holds.
    *
    * @throws IllegalArgumentException if there is no such type, or a field is set that the type has not
    */
  def of(proto: LayerParameter): Layer =
    LayerTypes.all.find(_.kind == proto.getType) match {
      case Some(layerType) => layerType.of(proto)
      case None =>
        throw new IllegalArgumentException(
          s"layer ${proto.getName}: there is no type '${proto.getType}'; there are " +
            LayerTypes.all.map(_.kind).mkString(" "))
    }

  /** A layer stands where SparkNet's constructors want a LayerParameter. */
  implicit def parameter(layer: Layer): LayerParameter = layer.toProto
}

/** A type of layer.
  *
  * @param kind the type's name in a prototxt
  */
abstract class LayerType[L <: Layer](val kind: String) extends MessageType[L, LayerParameter] {
  override private[dsl] def write(layer: Message[LayerParameter]): LayerParameter =
    codec.write(layer).asInstanceOf[LayerParameter.Builder].setType(kind).build()
}

private[dsl] object Tops {

  /** Stands for the one top that has the layer's name. */
  val ByName: Seq[String] = List("(the layer's name)")

  def of(top: Seq[String], name: String): Seq[String] = if (top eq ByName) List(name) else top
}
