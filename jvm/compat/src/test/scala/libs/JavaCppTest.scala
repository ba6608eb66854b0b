// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.file.{Files, Path}

import org.apache.spark.sql.Row
import org.apache.spark.sql.types._
import org.bytedeco.javacpp.caffe._
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

/** The names of JavaCPP's Caffe, by which SparkNet's second version read its prototxts. */
class JavaCppTest {
  @TempDir var folder: Path = _

  private def file(name: String, text: String) = Files.write(folder.resolve(name), text.getBytes).toString

  @Test def netsAndSolversTakeWhatTheyRead(): Unit = {
    val netParam = new NetParameter()
    ReadProtoFromTextFileOrDie(file("net", """
      input: "x" input_shape { dim: 4 dim: 3 } input: "label" input_shape { dim: 4 dim: 1 }
      layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
        inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
      layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }"""), netParam)
    Caffe.set_mode(Caffe.GPU)
    val schema = StructType(StructField("x", ArrayType(FloatType), false) :: StructField("label", IntegerType, false) :: Nil)
    val rows = List.tabulate(4)(i => Row(Array(i.toFloat, 1f, -1f), i % 2))
    val net = CaffeNet(netParam, schema, new DefaultPreprocessor(schema))
    assertArrayEquals(Array(4, 2), net.forward(rows.iterator, List("ip"))("ip").shape)

    val solverParam = new SolverParameter()
    ReadSolverParamsFromTextFileOrDie(
      file("solver", "net: 'nowhere' base_lr: 0.1 lr_policy: 'fixed' random_seed: 3"), solverParam)
    solverParam.clear_net()
    solverParam.set_allocated_net_param(netParam)
    val solver = new CaffeSolver(solverParam, schema, new DefaultPreprocessor(schema))
    val before = solver.trainNet.getWeights()
    solver.step(rows.iterator)
    assertFalse(CaffeWeightCollection.checkEqual(before, solver.trainNet.getWeights(), 0))
  }

  @Test def aFaultIsToldAndTheProgramLives(): Unit = {
    val told = assertThrows(
      classOf[IllegalArgumentException],
      () => ReadProtoFromTextFileOrDie(file("bad", "layer { nmae: 'x' }"), new NetParameter()))
    assertTrue(told.getMessage.contains("bad:1:"), told.getMessage)
  }
}
