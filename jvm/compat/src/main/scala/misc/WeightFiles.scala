// SPDX-License-Identifier: Apache-2.0
package misc

import java.io.{EOFException, InvalidClassException, ObjectInputFilter, ObjectInputStream, ObjectOutputStream}
import java.io.{ObjectStreamException, UTFDataFormatException}

import scala.util.Try

import org.acl.deepspark.data.Weight

/** Serialized weights. A file makes no object of any class but those that such files hold. */
private[misc] object WeightFiles {
  private val Lists = "java.util.ArrayList;java.util.LinkedList;java.util.Arrays$ArrayList;java.lang.Object"
  private val Maps = "java.util.HashMap;java.util.LinkedHashMap;java.util.TreeMap;java.util.Map$Entry"

  /** The parameters of a file of DeepSpark's, in the net's order. */
  def read(path: String): Seq[Array[Float]] =
    elements(path, of(path, s"${classOf[Weight].getName};$Lists")).zipWithIndex.map {
      case (weight: Weight, _) if weight.data != null && weight.offset == 0 => weight.data
      case (_: Weight, i) => throw fault(path, s"its weight $i is not a whole parameter")
      case (other, i) => throw fault(path, s"its element $i is ${nameOf(other)}")
    }

  /** The parameters of each layer. */
  def readByLayer(path: String): Map[String, Seq[Array[Float]]] = of(path, s"$Maps;$Lists") match {
    case map: java.util.Map[_, _] =>
      map.entrySet.toArray.map { case entry: java.util.Map.Entry[_, _] =>
        val name = entry.getKey match {
          case name: String => name
          case other => throw fault(path, s"a name of its layers is ${nameOf(other)}")
        }
        name -> elements(path, entry.getValue).map {
          case values: Array[Float] => values
          case other => throw fault(path, s"its layer $name has ${nameOf(other)}")
        }
      }.toMap
    case other => throw fault(path, s"it holds ${nameOf(other)}, and no map of layers")
  }

  /** Writes what DeepSpark reads. */
  def write(path: String, params: Seq[Array[Float]]): Unit = {
    val list = new java.util.ArrayList[Weight](params.length)
    for ((values, i) <- params.zipWithIndex) {
      val weight = new Weight
      weight.data = values
      weight.layerIndex = i
      list.add(weight)
    }
    val out = new ObjectOutputStream(Places.create(path))
    try out.writeObject(list)
    finally out.close()
  }

  /** The file's object, of these classes alone. */
  private def of(path: String, classes: String): AnyRef = {
    val (stream, size) = Places.open(path)
    try {
      val in = new ObjectInputStream(stream)
      // No array is longer than the file that holds it.
      val limits = s"maxdepth=8;maxarray=$size"
      in.setObjectInputFilter(ObjectInputFilter.Config.createFilter(s"$limits;$classes;java.lang.String;!*"))
      in.readObject()
    } catch {
      case e: InvalidClassException =>
        throw new IllegalArgumentException(s"$path: a class or a size that weights do not have: ${e.getMessage}", e)
      // The JDK's own classes end with whatever they meet in wrong bytes, such as a size below 0.
      case e @ (_: ObjectStreamException | _: EOFException | _: UTFDataFormatException | _: ClassNotFoundException |
          _: RuntimeException | _: StackOverflowError) =>
        throw new IllegalArgumentException(s"$path is no serialized object, or not all of one: $e", e)
    } finally stream.close()
  }

  private def elements(path: String, list: Any): Seq[Any] = list match {
    case list: java.util.List[_] =>
      // One of Arrays.asList may come without its array.
      Try(list.toArray.toSeq).getOrElse(throw fault(path, "a list of it has no elements, not even none"))
    case other => throw fault(path, s"it holds ${nameOf(other)} where a list should be")
  }

  private def nameOf(value: Any): String = if (value == null) "null" else value.getClass.getName

  private def fault(path: String, what: String) =
    new IllegalArgumentException(s"$path is no file of weights: $what")
}
