// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** CaffeOnSpark's flags and properties, without a cluster. */
class ConfigTest {
  private def parsed(args: String*): Config = new Config(null, args.toArray)

  private def message(code: => Any): String =
    assertThrows(classOf[IllegalArgumentException], () => { code; () }).getMessage

  @Test def everyFlagSetsItsProperty(): Unit = {
    val flags = Seq[(String, String, Config => Any, Any)](
      ("model", "hdfs:///m", _.modelPath, "hdfs:///m"),
      ("output", "out", _.outputPath, "out"),
      ("outputFormat", "parquet", _.outputFormat, "parquet"),
      ("devices", "3", _.devices, 3),
      ("snapshot", "s", _.snapshotStateFile, "s"),
      ("weights", "a,b", _.snapshotModelFile, "a,b"),
      ("connection", "Ethernet", _.connection, 2),
      ("connection", "infiniband", _.connection, 1),
      ("connection", "anything", _.connection, 1),
      ("clusterSize", "4", _.clusterSize, 4),
      ("lmdb_partitions", "5", _.lmdb_partitions, 5),
      ("label", "digit", _.label, "digit"),
      ("features", "ip1,ip2", _.features.toList, List("ip1", "ip2")),
      ("imageRoot", "images", _.imageRoot, "images"),
      ("labelFile", "labels", _.labelFile, "labels"),
      ("captionFile", "captions", _.captionFile, "captions"),
      ("captionLength", "9", _.captionLength, 9),
      ("vocabSize", "8800", _.vocabSize, 8800),
      ("imageCaptionDFDir", "/i", _.imageCaptionDFDir, "/i"),
      ("vocabDir", "/v", _.vocabDir, "/v"),
      ("embeddingDFDir", "/e", _.embeddingDFDir, "/e"))
    for ((flag, value, property, expected) <- flags)
      assertEquals(expected, property(parsed(s"-$flag", value)), flag)
    val switches = Seq[(String, Config => Boolean)](
      "train" -> (_.isTraining), "test" -> (_.isTest), "persistent" -> (_.isRddPersistent),
      "resize" -> (_.resize))
    for ((flag, property) <- switches) {
      assertTrue(property(parsed(s"-$flag")), flag)
      assertFalse(property(parsed()), flag)
    }
  }

  @Test def withoutFlagsTheDefaultsHold(): Unit = {
    val conf = parsed()
    assertEquals(("", "output", "json", 1, 1, 1),
      (conf.modelPath, conf.outputPath, conf.outputFormat, conf.devices, conf.clusterSize, conf.lmdb_partitions))
    assertEquals(2, conf.connection, "TCP")
    assertEquals((20, -1, "", ""), (conf.captionLength, conf.vocabSize, conf.vocabDir, conf.label))
    assertNull(conf.imageRoot)
    assertNull(conf.features)
    assertEquals((-1, -1), (conf.train_data_layer_id, conf.test_data_layer_id))
    assertNull(conf.netParam)
    val empty = new Config(null)
    assertEquals(("label", 0, 0, 0), (empty.label, empty.devices, empty.clusterSize, empty.connection))
    assertEquals(1, empty.transform_thread_per_device)
  }

  @Test def theLastOfTestAndFeaturesWins(): Unit = {
    val conf = parsed("-test", "-features", "ip1", "-label", "label")
    assertTrue(conf.isFeature && !conf.isTest)
    assertEquals(List("ip1", "label"), conf.features.toList)
    conf.isTest = true
    assertTrue(conf.isTest && !conf.isFeature)
    conf.label = "digit"
    assertEquals(List("ip1", "label", "digit"), conf.features.toList)
    conf.features = Array("ip2")
    assertEquals(List("ip2", "digit"), conf.features.toList)
  }

  @Test def strayWordsAreDroppedAndOthersFlagsKept(): Unit = {
    val conf = parsed("-resize", "True", "-sync", "average", "-syncPeriod", "4", "-model", "m", "-survivors")
    assertTrue(conf.resize)
    assertEquals("m", conf.modelPath)
    val flags = conf.flags("-train").toSeq
    assertTrue(flags.containsSlice(Seq("-sync", "average", "-syncPeriod", "4", "-survivors")), flags.toString)
    assertTrue(flags.containsSlice(Seq("-connection", "ethernet")), flags.toString)
    assertFalse(flags.contains("-prefetchThreads"), flags.toString)
    conf.transform_thread_per_device = 3
    assertTrue(conf.flags("-train").toSeq.containsSlice(Seq("-prefetchThreads", "3")))
    assertEquals("-devices two: a whole number is needed", message(parsed("-devices", "two")))
    assertEquals("-model needs a value after it", message(parsed("-model")))
    assertEquals("-model needs a value after it, and the flag -train follows", message(parsed("-model", "-train")))
    assertEquals(-1, parsed("-vocabSize", "-1").vocabSize, "a negative number is a value")
    for (flag <- Seq("devices", "lmdb_partitions"); wrong <- Seq("-1", "0"))
      assertEquals(s"-$flag $wrong: it must be at least 1", message(parsed(s"-$flag", wrong)))
    conf.devices = -1
    assertEquals("conf.devices is -1: it must be at least 1", message(conf.flags("-train")))
    assertEquals("-clusterSize 0: it must be at least 1", message(parsed("-clusterSize", "0")))
  }

  @Test def theNetIsFoundBesideItsSolver(@TempDir folder: Path): Unit = {
    def data(name: String, rules: String) =
      s"layer { name: '$name' type: 'MemoryData' top: 'data' $rules memory_data_param { batch_size: 2 } }\n"
    Files.write(folder.resolve("solver"), "net: 'net' test_iter: 3 test_interval: 5".getBytes(UTF_8))
    Files.write(folder.resolve("net"), ("layer { name: 'other' type: 'DummyData' top: 'noise' }\n" +
      data("a", "include { phase: TEST stage: 'deploy' }") +
      data("b", "source_class: 'x' include { phase: TRAIN }")).getBytes(UTF_8))
    val conf = parsed("-conf", folder.resolve("solver").toString)
    assertEquals(5, conf.solverParameter.getTestInterval)
    assertEquals((2, 1), (conf.train_data_layer_id, conf.test_data_layer_id), "wherever the layers are")
    assertTrue(conf.toString.contains("train_data_layer_id:2\n"), conf.toString)

    Files.delete(folder.resolve("net"))
    val copy = serialized(conf)
    assertEquals("b", copy.netParam.getLayer(2).getName, "executors need no files")
    assertEquals(conf.toString, copy.toString)
    assertTrue(message(parsed("-conf", folder.resolve("solver").toString)).endsWith(
      "its net net is neither there nor beside it"))
    Files.write(folder.resolve("net"), data("one", "").getBytes(UTF_8))
    conf.protoFile = folder.resolve("solver").toString
    assertEquals((0, 0), (conf.train_data_layer_id, conf.test_data_layer_id), "one layer for both phases")
    Files.write(folder.resolve("net"), "layer {\n nmae: 'x' }".getBytes(UTF_8))
    assertTrue(message(parsed("-conf", folder.resolve("solver").toString)).contains("net:2:2: "))
  }

  @Test def aPathMayHaveABlankAndANumberSign(@TempDir folder: Path): Unit = {
    val inside = Files.createDirectory(folder.resolve("a b #1"))
    Files.write(inside.resolve("solver"), "net: 'net' test_interval: 5".getBytes(UTF_8))
    Files.write(inside.resolve("net"), "name: 'odd'".getBytes(UTF_8))
    for (scheme <- Seq("", "file:", "file://")) {
      val conf = parsed("-conf", s"$scheme$inside/solver")
      assertEquals((5, "odd"), (conf.solverParameter.getTestInterval, conf.netParam.getName), scheme)
    }
  }

  private def serialized(conf: Config): Config = {
    val bytes = new ByteArrayOutputStream()
    new ObjectOutputStream(bytes).writeObject(conf)
    new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray)).readObject().asInstanceOf[Config]
  }
}
