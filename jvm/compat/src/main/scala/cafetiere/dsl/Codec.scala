// SPDX-License-Identifier: Apache-2.0
package cafetiere.dsl

import cafetiere.protobuf
import cafetiere.protobuf.Descriptors.{EnumValueDescriptor, FieldDescriptor}
import cafetiere.protobuf.ProtocolMessageEnum
import caffe.Caffe

/** Writes the arguments of a case class into a protobuf message, and reads them out of it.
  *
  * @param paths for each argument, in order, the field that it fills, or field.field inside it
  */
private[dsl] final class Codec(prototype: protobuf.Message, paths: Seq[String]) {
  private[dsl] val descriptor = prototype.getDescriptorForType

  /** For each argument the field, and the one that it lies in. */
  val fields: Seq[(Option[FieldDescriptor], FieldDescriptor)] = paths.map { path =>
    path.split('.') match {
      case Array(outer, inner) =>
        val field = descriptor.findFieldByName(outer)
        (Some(field), field.getMessageType.findFieldByName(inner))
      case _ => (None, descriptor.findFieldByName(path))
    }
  }

  def builder: protobuf.Message.Builder = prototype.newBuilderForType()

  def write(message: Product): protobuf.Message.Builder = {
    val out = builder
    for (((outer, field), argument) <- fields.zip(message.productIterator.toList)) {
      def target = outer.fold(out)(out.getFieldBuilder)
      argument match {
        case Unset => ()
        case Value(value) => target.setField(field, Codec.toProto(value))
        case values: Seq[_] => values.foreach(v => target.addRepeatedField(field, Codec.toProto(v)))
        case value => target.setField(field, Codec.toProto(value))
      }
    }
    out
  }

  def read(message: protobuf.Message): Array[Any] = {
    refuseOthers(message)
    fields.map { case (outer, field) =>
      val holder = outer.fold(message)(message.getField(_).asInstanceOf[protobuf.Message])
      if (field.isRepeated)
        List.tabulate(holder.getRepeatedFieldCount(field))(i =>
          Codec.fromProto(holder.getRepeatedField(field, i)))
      else if (holder.hasField(field)) Value(Codec.fromProto(holder.getField(field)))
      else Unset
    }.toArray
  }

  /** Says what is set and has no argument: it would be lost. */
  private def refuseOthers(message: protobuf.Message): Unit = {
    val known = fields.map { case (outer, field) => outer.getOrElse(field).getName } :+ "type"
    val set = message.getAllFields.keySet.iterator
    while (set.hasNext) {
      val name = set.next().getName
      if (!known.contains(name)) {
        val (where, what) = message match {
          case layer: Caffe.LayerParameter => (s"layer ${layer.getName}: ", s"type ${layer.getType}")
          case other => ("", other.getDescriptorForType.getName)
        }
        throw new IllegalArgumentException(
          s"$where$what takes no $name; leave it out, or bring an older file up to date first")
      }
    }
  }
}

private[dsl] object Codec {
  private val messageTypes: Map[String, MessageType[_, _]] =
    MessageTypes.all.map(t => t.codec.descriptor.getFullName -> t).toMap

  def toProto(value: Any): Any = value match {
    case message: Message[_] => message.toProto
    case enumValue: ProtocolMessageEnum => enumValue.getValueDescriptor
    case other => other
  }

  def fromProto(value: Any): Any = value match {
    case layer: Caffe.LayerParameter => Layer.of(layer)
    case message: protobuf.Message => read(message)
    case enumValue: EnumValueDescriptor => javaEnum(enumValue)
    case other => other
  }

  private def read(message: protobuf.Message): Any = {
    val found = messageTypes(message.getDescriptorForType.getFullName)
    found.asInstanceOf[MessageType[Message[Any], Any]].of(message)
  }

  /** The constant of the Java enum, which is nested as the proto's is. */
  private def javaEnum(value: EnumValueDescriptor): Any = {
    val name = value.getType.getFullName.stripPrefix("caffe.").replace('.', '$')
    Class.forName(s"caffe.Caffe$$$name").getMethod("valueOf", classOf[EnumValueDescriptor])
      .invoke(null, value)
  }

  /** An argument that must be given. */
  def needed[T](read: Any, name: String): T = read match {
    case Value(value) => value.asInstanceOf[T]
    case _ if name == "name" => "".asInstanceOf[T]
    case _ => throw new IllegalArgumentException(s"$name is missing; it has no default")
  }
}
