// SPDX-License-Identifier: Apache-2.0
package libs

import scala.util.Random

import org.apache.spark.sql.types._

/** Writes values of a DataFrame's columns into a net's arrays. */
trait Preprocessor {

  /** What writes a value of a column into the array of a row.
    *
    * @param name the column
    * @param shape of a row in the net
    * @return a function of a value, as Row gives it, and the array to fill, which has as many elements
    *   as the shape says; it is for one thread
    */
  def convert(name: String, shape: Array[Int]): (Any, Array[Float]) => Unit

  /** What takes its place where a net is asked and not trained: nothing random. */
  def forTest: Preprocessor = this
}

/** Takes numbers, bytes as 0 to 255, and arrays of floats as they are.
  *
  * @param schema the DataFrame's
  */
class DefaultPreprocessor(schema: StructType) extends Preprocessor {
  def convert(name: String, shape: Array[Int]): (Any, Array[Float]) => Unit =
    schema(name).dataType match {
      case FloatType | DoubleType | IntegerType | LongType =>
        Checked.sized(name, shape) { (element, buffer) =>
          Checked.requireCount(name, 1, buffer)
          buffer(0) = element.asInstanceOf[Number].floatValue
        }
      case BinaryType =>
        Checked.sized(name, shape) { (element, buffer) =>
          val bytes = element.asInstanceOf[Array[Byte]]
          Checked.requireCount(name, bytes.length, buffer)
          var i = 0
          while (i < bytes.length) {
            buffer(i) = (bytes(i) & 0xff).toFloat
            i += 1
          }
        }
      case ArrayType(FloatType, _) =>
        Checked.sized(name, shape) { (element, buffer) =>
          val values = element match {
            case array: Array[Float] => array
            case row: scala.collection.Seq[_] => Checked.floats(name, row)
          }
          Checked.requireCount(name, values.length, buffer)
          System.arraycopy(values, 0, buffer, 0, values.length)
        }
      case other => throw Checked.noWay(name, other)
    }
}

/** Takes images as bytes, plane after plane: subtracts the mean and cuts out a part, at a random place in
  * training and in the middle in testing. Integers, which are labels, are taken as they are.
  *
  * @param schema the DataFrame's
  * @param meanImage of 3 * fullHeight * fullWidth
  */
class ImageNetPreprocessor(
    schema: StructType,
    meanImage: Array[Float],
    fullHeight: Int = 256,
    fullWidth: Int = 256,
    croppedHeight: Int = 227,
    croppedWidth: Int = 227)
    extends Preprocessor {
  Checked.requireCount("meanImage", 3 * fullHeight * fullWidth, meanImage)

  def convert(name: String, shape: Array[Int]): (Any, Array[Float]) => Unit =
    cutAt(name, shape, most => Random.nextInt(most + 1))

  override def forTest: Preprocessor = (name, shape) => cutAt(name, shape, most => most / 2)

  private def cutAt(
      name: String,
      shape: Array[Int],
      place: Int => Int): (Any, Array[Float]) => Unit =
    schema(name).dataType match {
      case IntegerType => new DefaultPreprocessor(schema).convert(name, shape)
      case BinaryType =>
        if (!shape.sameElements(Array(3, croppedHeight, croppedWidth)))
          throw new IllegalArgumentException(
            s"column $name: the net wants ${shape.mkString(" x ")}, and images are cut to " +
              s"3 x $croppedHeight x $croppedWidth")
        Checked.sized(name, shape) { (element, buffer) =>
          val image = element.asInstanceOf[Array[Byte]]
          Checked.requireCount(name, image.length, meanImage)
          cut(
            image,
            place(fullHeight - croppedHeight),
            place(fullWidth - croppedWidth),
            buffer)
        }
      case other => throw Checked.noWay(name, other)
    }

  private def cut(image: Array[Byte], top: Int, left: Int, buffer: Array[Float]): Unit = {
    var next = 0
    var row = 0
    while (row < 3 * croppedHeight) {
      val (channel, line) = (row / croppedHeight, row % croppedHeight)
      val begin = (channel * fullHeight + top + line) * fullWidth + left
      var i = begin
      while (i < begin + croppedWidth) {
        buffer(next) = (image(i) & 0xff) - meanImage(i)
        next += 1
        i += 1
      }
      row += 1
    }
  }
}

private object Checked {

  /** Such a function, which first holds the array against the shape. */
  def sized(name: String, shape: Array[Int])(
      fill: (Any, Array[Float]) => Unit): (Any, Array[Float]) => Unit = {
    val count = shape.product
    (element, buffer) => {
      requireCount(name, count, buffer)
      if (element == null)
        throw new IllegalArgumentException(s"column $name is null: fill it, or drop the row")
      fill(element, buffer)
    }
  }

  /** The floats of an array, none of which may be null. */
  def floats(name: String, row: scala.collection.Seq[_]): Array[Float] = {
    val missing = row.indexWhere(_ == null)
    if (missing >= 0)
      throw new IllegalArgumentException(
        s"column $name: element $missing of its array is null: fill it, or drop the row")
    row.asInstanceOf[scala.collection.Seq[Float]].toArray
  }

  def requireCount(name: String, count: Int, buffer: Array[Float]): Unit =
    if (buffer.length != count)
      throw new IllegalArgumentException(
        s"$name has $count values, and the array to hold them ${buffer.length}")

  def noWay(name: String, dataType: DataType): IllegalArgumentException =
    new IllegalArgumentException(
      s"column $name has type ${dataType.simpleString}; cast it to float, binary or array<float>")
}
