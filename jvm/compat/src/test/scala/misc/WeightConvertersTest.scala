// SPDX-License-Identifier: Apache-2.0
package misc

import java.io.{ByteArrayOutputStream, ObjectOutputStream}
import java.net.URLClassLoader
import java.nio.file.{Files, Path}
import java.util.concurrent.TimeUnit
import javax.tools.ToolProvider

import scala.util.Random

import cafetiere.core.net.{Net => EngineNet}
import org.acl.deepspark.data.Weight
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** Weights between DeepSpark's files, Caffe's and SparkNet's. */
class WeightConvertersTest {
  @TempDir var folder: Path = _

  /** Its two last layers share their weights, so that there are five parameters. */
  private val layers = """
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
      convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "ip1" type: "InnerProduct" bottom: "conv1" top: "ip1" param { name: "w" } param { name: "b1" }
      inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
    layer { name: "ip2" type: "InnerProduct" bottom: "conv1" top: "ip2" param { name: "w" } param { name: "b2" }
      inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }"""
  private val counts = Seq(2 * 1 * 3 * 3, 2, 8 * 32, 8, 8)
  private val values = counts.zipWithIndex.map { case (count, i) => Array.tabulate(count)(k => i + k / 1024f) }

  private def path(name: String): String = folder.resolve(name).toString
  private def file(name: String, text: String): String = {
    Files.write(folder.resolve(name), text.getBytes("UTF-8"))
    path(name)
  }
  private def netFile(): String = file("net.prototxt",
    """name: "small" layer { name: "data" type: "MemoryData" top: "data" top: "label"
      memory_data_param { batch_size: 2 channels: 1 height: 6 width: 6 }
      transform_param { mean_file: "nowhere" } }""" + layers)

  private def serialized(name: String, value: AnyRef): String = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeObject(value)
    out.close()
    Files.write(folder.resolve(name), bytes.toByteArray)
    path(name)
  }

  private def list[T](elements: Seq[T]): java.util.List[T] = {
    val made = new java.util.ArrayList[T]
    elements.foreach(element => made.add(element))
    made
  }

  private def weights(arrays: Seq[Array[Float]], offset: Int = 0): java.util.List[Weight] = list(arrays.map { array =>
    val weight = new Weight
    weight.data = array
    weight.offset = offset
    weight
  })

  /** The parameters of a model, as the engine reads them. */
  private def model(name: String): Seq[Seq[Float]] = {
    val net = EngineNet.of("input: 'data' input_shape { dim: 2 dim: 1 dim: 6 dim: 6 }" + layers, "TRAIN")
    try {
      net.copyFrom(path(name))
      counts.indices.map { i =>
        val array = new Array[Float](net.param(i).count)
        net.param(i).data.asFloatBuffer.get(array)
        array.toSeq
      }
    } finally net.close()
  }

  private def expected: Seq[Seq[Float]] = values.map(_.toSeq)

  private def said(code: => Unit): String =
    assertThrows(classOf[IllegalArgumentException], () => code).getMessage

  /** What DeepSpark itself writes: the class of its name comes from elsewhere, with the fields of its files. */
  private def ofAnotherClass(): String = {
    val source = folder.resolve("org/acl/deepspark/data/Weight.java")
    Files.createDirectories(source.getParent)
    Files.write(source, """package org.acl.deepspark.data;
      public class Weight implements java.io.Serializable {
        private static final long serialVersionUID = 1L;
        public float[] data; public int offset; public int layerIndex; }""".getBytes("UTF-8"))
    assertEquals(0, ToolProvider.getSystemJavaCompiler.run(null, null, null, "-proc:none", source.toString))
    val loader = new URLClassLoader(Array(folder.toUri.toURL), null)
    val theirs = loader.loadClass(classOf[Weight].getName)
    assertNotSame(classOf[Weight], theirs)
    try serialized("state_iter_20.weight", list(values.zipWithIndex.map { case (array, i) =>
      val weight = theirs.getConstructor().newInstance().asInstanceOf[AnyRef]
      theirs.getField("data").set(weight, array)
      theirs.getField("layerIndex").setInt(weight, i)
      weight
    }))
    finally loader.close()
  }

  @Test def aSnapshotOfDeepSparkBecomesAModelAndComesBack(): Unit = {
    val snapshot = ofAnotherClass()
    for (name <- Seq("a.caffemodel", "a.caffemodel.h5")) {
      WeightConverter.main(Array(snapshot, path(name), "no solver", netFile()))
      assertEquals(expected, model(name))
      WeightConverter2.convertCaffeModel(path(name), path("back.weight"), "no solver", netFile())
      assertArrayEquals(
        Files.readAllBytes(folder.resolve("state_iter_20.weight")),
        Files.readAllBytes(folder.resolve("back.weight")))
    }
  }

  /** A snapshot of before is another training's. */
  @Test def snapshotsBecomeFilesWhileATrainingRuns(): Unit = {
    val (first, run) = (weights(values), Files.createDirectory(folder.resolve("run")))
    def snapshot(step: Int): Unit = WeightConverter.main(
      Array(serialized("w", first), run.resolve(s"state_iter_$step.caffemodel").toString, "", netFile()))
    def made(step: Long) = run.resolve(s"${step / 10}.weight")
    snapshot(10)
    val snapshots = new WeightSnapshots(
      run.resolve("state").toUri.toString, netFile(), Array(1, 6, 6))(step => made(step).toUri.toString)
    snapshot(20)
    val deadline = System.nanoTime + TimeUnit.MINUTES.toNanos(1)
    while (!Files.exists(made(20)) && System.nanoTime < deadline) Thread.sleep(50)
    assertTrue(Files.exists(made(20)), "it waits for the end")
    snapshot(30)
    snapshots.close()
    for (step <- Seq(20, 30))
      assertEquals(expected, WeightFiles.read(made(step.toLong).toString).map(_.toSeq))
    assertFalse(Files.exists(made(10)))
  }

  /** Changed, cut and lengthened files are read, or refused in words; more of them with -Dfuzz.count=N. */
  @Test def noFileOfAStrangerDoesMore(): Unit = {
    val map = new java.util.LinkedHashMap[String, java.util.List[Array[Float]]]
    map.put("conv1", list(values.take(2)))
    map.put("ip1", java.util.Arrays.asList(values(2), values(3)))
    val whole = Seq(serialized("list", weights(values)), serialized("map", map))
      .map(name => Files.readAllBytes(java.nio.file.Paths.get(name)))
    val readers = Seq[String => Any](WeightFiles.read(_), WeightFiles.readByLayer(_))
    val random = new Random(1)
    var refused = 0
    for (_ <- 1 to sys.props.getOrElse("fuzz.count", "2000").toInt) {
      val which = random.nextInt(2)
      Files.write(folder.resolve("mutant"), mutant(whole(which), random))
      try readers(if (random.nextInt(8) == 0) 1 - which else which)(path("mutant"))
      catch { case e: IllegalArgumentException if e.getMessage.startsWith(path("mutant")) => refused += 1 }
    }
    assertTrue(refused > 0)
  }

  /** Most changes are near the begin, where the stream says what it holds. */
  private def mutant(bytes: Array[Byte], random: Random): Array[Byte] = {
    val changed = bytes.clone
    for (_ <- 0 to random.nextInt(4))
      changed(random.nextInt(if (random.nextBoolean()) math.min(400, changed.length) else changed.length)) =
        if (random.nextBoolean()) random.nextInt(256).toByte else (0x70 + random.nextInt(15)).toByte
    random.nextInt(4) match {
      case 0 => changed.take(random.nextInt(changed.length))
      case 1 =>
        val at = random.nextInt(changed.length)
        changed.take(at) ++ changed.drop(random.nextInt(changed.length))
      case _ => changed
    }
  }

  @Test def pathsWithASchemeAreHadoops(): Unit = {
    def uri(name: String) = folder.resolve(name).toUri.toString
    serialized("w", weights(values))
    netFile()
    WeightConverter.main(Array(uri("w"), uri("u.caffemodel.h5"), "", uri("net.prototxt")))
    assertEquals(expected, model("u.caffemodel.h5"))
    WeightConverter2.main(Array(uri("u.caffemodel.h5"), uri("back.weight"), "", uri("net.prototxt")))
    WeightConverter.main(Array(path("back.weight"), path("again.caffemodel"), "", netFile()))
    assertEquals(expected, model("again.caffemodel"))
    // Hadoop's own mark of a file that it has written on a local disk.
    assertTrue(Files.exists(folder.resolve(".back.weight.crc")))
  }

  @Test def weightsByLayerBecomeAModel(): Unit = {
    val map = new java.util.HashMap[String, java.util.List[Array[Float]]]
    map.put("conv1", list(values.take(2)))
    map.put("ip1", list(Seq(values(2), values(3))))
    map.put("ip2", list(Seq(values(2), values(4))))
    map.put("elsewhere", list(values))
    val input = serialized("by.layer", map)
    SparkNetWeightConverter.main(Array(input, path("s.caffemodel"), "", netFile()))
    assertEquals(expected, model("s.caffemodel"))
    map.remove("ip2")
    val message = said(SparkNetWeightConverter.convertCaffeModel(
      serialized("less", map), path("none"), "", netFile()))
    assertTrue(message.endsWith("less does not fit the net: it has no layer ip2"), message)
  }

  @Test def aNetThatReadsADatabaseNeedsItsImagesShape(): Unit = {
    val net = file("data.prototxt", """
      layer { name: "digits" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        data_param { source: "nowhere" batch_size: 2 } }
      layer { name: "digits" type: "Data" top: "data" top: "label" include { phase: TEST }
        data_param { source: "nowhere" batch_size: 2 } }""" + layers)
    val input = serialized("w", weights(values))
    val message = said(WeightConverter.main(Array(input, path("d.caffemodel"), "", net)))
    assertTrue(message.contains("layer digits reads files"), message)
    WeightConverter.main(Array(input, path("d.caffemodel"), "", net, "1,6,6"))
    assertEquals(expected, model("d.caffemodel"))
    assertTrue(said(WeightConverter.main(Array(input))).startsWith("give INPUT OUTPUT SOLVER NET"))
    assertTrue(said(WeightConverter.main(Array())).endsWith("; given is nothing"))
  }

  @Test def whatDoesNotFitIsRefusedByName(): Unit = {
    def message(value: AnyRef) =
      said(WeightConverter.convertCaffeModel(serialized("x", value), path("none"), "", netFile()))
    val fewer = message(weights(values.init))
    assertTrue(fewer.endsWith("it has 4 parameters and the net 5"), fewer)
    val shorter = message(weights(values.updated(1, Array(1f))))
    assertTrue(shorter.contains("parameter 1 of layer conv1 has shape (2), and the file 1 values"), shorter)
    val part = message(weights(values, offset = 3))
    assertTrue(part.endsWith("its weight 0 is not a whole parameter"), part)
    assertTrue(message(new Array[Float](3)).contains("where a list should be"))
    val other = message(list(Seq(new java.util.Date)))
    assertTrue(other.contains("a class or a size that weights do not have"), other)
    assertFalse(Files.exists(folder.resolve("none")))

    val whole = Files.readAllBytes(java.nio.file.Paths.get(serialized("whole", weights(values))))
    for (length <- Seq(0, 3, 60, whole.length - 1)) {
      Files.write(folder.resolve("cut"), whole.take(length))
      val cut = said(WeightConverter.convertCaffeModel(path("cut"), path("none"), "", netFile()))
      assertTrue(cut.contains("is no serialized object, or not all of one"), cut)
    }
  }

  @Test def aModelThatLacksALayerIsRefused(): Unit = {
    val net = EngineNet.of("input: 'data' input_shape { dim: 2 dim: 1 dim: 6 dim: 6 }" +
      layers.substring(0, layers.indexOf("layer { name: \"ip1\"")), "TRAIN")
    try net.save(path("first.caffemodel"))
    finally net.close()
    val message = said(WeightConverter2.convertCaffeModel(
      path("first.caffemodel"), path("none"), "", netFile()))
    assertTrue(message.endsWith("it has no values for parameter 0 of layer ip1"), message)
  }
}
