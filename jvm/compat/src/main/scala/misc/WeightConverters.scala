// SPDX-License-Identifier: Apache-2.0
package misc

/** DeepSpark's programs for weights. Paths with a scheme, such as `hdfs:`, are Hadoop's, others local;
  * `solverSpec` is not read. A net whose `Data` layer reads a database needs the shape of an image, such as
  * `3,32,32`: the programs take it behind their four paths.
  */
abstract class Converter private[misc] {

  /** Converts a file.
    *
    * @throws IllegalArgumentException if the file or the net has a fault, or they do not fit each other
    * @throws java.io.IOException if a file cannot be read or written
    */
  def convertCaffeModel(input: String, output: String, solverSpec: String, netSpec: String): Unit =
    convert(input, output, netSpec, None)

  /** The same for a net that reads images of this shape from files: channels, height and width. */
  def convertCaffeModel(
      input: String, output: String, solverSpec: String, netSpec: String, shape: Array[Int]): Unit =
    convert(input, output, netSpec, Some(shape))

  def main(args: Array[String]): Unit = args match {
    case Array(input, output, _, netSpec) => convert(input, output, netSpec, None)
    case Array(input, output, _, netSpec, shape) if shape.matches("\\d{1,9}(,\\d{1,9})*") =>
      convert(input, output, netSpec, Some(shape.split(',').map(_.toInt)))
    case _ => throw new IllegalArgumentException(
        s"give INPUT OUTPUT SOLVER NET [CHANNELS,HEIGHT,WIDTH]; given is ${Converter.told(args)}")
  }

  private def convert(input: String, output: String, netSpec: String, shape: Option[Array[Int]]): Unit = {
    val net = ConvertedNet.read(netSpec, shape)
    try convert(input, output, net)
    finally net.close()
  }

  private[misc] def convert(input: String, output: String, net: ConvertedNet): Unit
}

private object Converter {
  def told(args: Array[String]): String = if (args.isEmpty) "nothing" else args.mkString("'", " ", "'")
}

/** Makes a .caffemodel of DeepSpark's `state_iter_N.weight`; in its HDF5 form where the name ends with ".h5". */
object WeightConverter extends Converter {
  private[misc] override def convert(input: String, output: String, net: ConvertedNet): Unit = {
    net.set(WeightFiles.read(input), input)
    net.save(output)
  }
}

/** Makes a file of DeepSpark's of a .caffemodel, or its HDF5 form. */
object WeightConverter2 extends Converter {
  private[misc] override def convert(input: String, output: String, net: ConvertedNet): Unit = {
    net.load(input)
    WeightFiles.write(output, net.get())
  }
}

/** Makes a .caffemodel of weights by layer: a serialized `java.util.Map` from names to lists of `float[]`. */
object SparkNetWeightConverter extends Converter {
  private[misc] override def convert(input: String, output: String, net: ConvertedNet): Unit = {
    net.set(WeightFiles.readByLayer(input), input)
    net.save(output)
  }
}
