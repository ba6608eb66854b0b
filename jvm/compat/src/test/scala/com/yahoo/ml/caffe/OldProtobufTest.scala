// SPDX-License-Identifier: Apache-2.0
package com.yahoo.ml.caffe

import java.lang.management.ManagementFactory
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.TimeUnit

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.io.TempDir
import org.junit.jupiter.api.{Tag, Test}

/** A class path that begins with protobuf-java 2.5.0, as Hadoop's did. */
class OldProtobufTest {
  @Tag("long-run") @Test def trainingTestAndFeaturesRun(@TempDir folder: Path): Unit = {
    val jar = sys.props("old.protobuf")
    val options = ManagementFactory.getRuntimeMXBean.getInputArguments.toArray(Array[String]()).toSeq
    val properties = sys.props.toSeq.collect {
      case (name, value) if name.matches("root|spark\\..*") => s"-D$name=$value"
    }
    val program = OldProtobuf.getClass.getName.stripSuffix("$")
    val command = Seq(Paths.get(sys.props("java.home"), "bin/java").toString) ++ options ++ properties ++
      Seq("-cp", s"$jar:${sys.props("java.class.path")}", program, folder.toString)
    val log = folder.resolve("log").toFile
    val process = new ProcessBuilder(command: _*).redirectErrorStream(true).redirectOutput(log).start()
    try assertTrue(process.waitFor(150, TimeUnit.SECONDS), "it has not ended")
    finally process.destroyForcibly()
    def text(name: String) = new String(Files.readAllBytes(folder.resolve(name)), UTF_8)
    assertEquals(0, process.exitValue(), text("log"))
    assertEquals(Seq.fill(3)(Paths.get(jar).getFileName.toString), text("protobuf").split("\n").toSeq)
    val accuracy = "accuracy: ([0-9.]+)".r.findFirstMatchIn(text("result.txt")).get.group(1)
    assertTrue(accuracy.toDouble > 0.8, accuracy)
    assertEquals("103 10", text("features.txt"))
  }
}

/** The program of that test. */
object OldProtobuf {
  def main(args: Array[String]): Unit = {
    val cluster = new Cluster(Paths.get(args.head))
    try {
      val found = jar() +: cluster.sc.parallelize(0 until 2, 2).map(_ => jar()).collect().toSeq
      write(cluster, "protobuf", found.mkString("\n"))
      val solver = cluster.solver("old", 40, cluster.images("TRAIN", "users.ListedBars", "205"),
        cluster.images("TEST", "users.DrawnBars", "103"))
      def run(more: String*): Unit = CaffeOnSpark.run(cluster.sc,
        Array("-conf", solver, "-model", cluster.uri("old.model"), "-clusterSize", "2") ++ more)
      run("-train", "-test", "-output", cluster.uri("result.txt"))
      run("-features", "ip2", "-output", cluster.uri("features"))
      val features = cluster.spark.read.json(cluster.uri("features"))
      val width = features.first().getAs[scala.collection.Seq[Double]]("ip2").size
      write(cluster, "features.txt", s"${features.select("SampleID").distinct().count()} $width")
    } finally cluster.spark.stop()
  }

  /** Where protobuf's own classes come from. */
  private def jar(): String = {
    val place = Class.forName("com.google.protobuf.Message").getProtectionDomain.getCodeSource.getLocation
    Paths.get(place.toURI).getFileName.toString
  }

  private def write(cluster: Cluster, name: String, text: String): Unit =
    Files.write(cluster.path(name), text.getBytes(UTF_8))
}
