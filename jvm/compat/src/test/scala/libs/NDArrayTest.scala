// SPDX-License-Identifier: Apache-2.0
package libs

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.nio.{ByteBuffer, ByteOrder}

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

class NDArrayTest {
  private val cube = NDArray(Array.tabulate(3 * 4 * 5)(_.toFloat), Array(3, 4, 5))

  private def values(array: NDArray): List[Int] = array.toFlat().map(_.toInt).toList

  private def message(code: => Any): String =
    assertThrows(classOf[RuntimeException], () => { code; () }).getMessage

  @Test def valuesByTheirIndices(): Unit = {
    assertEquals(3, cube.dim)
    assertEquals(33f, cube.get(Array(1, 2, 3)))
    cube.set(Array(1, 2, 3), 5f)
    assertEquals(5f, cube.get(Array(1, 2, 3)))
    assertEquals("(1, 2) is not within (3, 4, 5)", message(cube.get(Array(1, 2))))
    assertEquals("(1, 4, 0) is not within (3, 4, 5)", message(cube.set(Array(1, 4, 0), 1f)))
  }

  @Test def viewsShareTheirValues(): Unit = {
    val part = cube.subarray(Array(0, 1, 2), Array(1, 3, 5))
    assertEquals(List(1, 2, 3), part.shape.toList)
    assertEquals(List(7, 8, 9, 12, 13, 14), values(part))
    assertEquals(List(22, 27, 32, 37), values(cube.slice(0, 1).slice(1, 2)))
    assertEquals(List(44, 49, 54, 59), values(cube.slice(2, 4).slice(0, 2)))
    part.slice(0, 0).set(Array(1, 0), -1f)
    assertEquals(-1f, cube.get(Array(0, 2, 2)))
    assertEquals(60, part.getBuffer().length)
    assertEquals("no index 5 of axis 2 in (3, 4, 5)", message(cube.slice(2, 5)))
    assertTrue(message(cube.subarray(Array(0, 0, 0), Array(4, 1, 1))).contains("not within (3, 4, 5)"))
  }

  @Test def arithmeticOfViews(): Unit = {
    val sum = NDArray.plus(
      cube.subarray(Array(0, 0, 0), Array(1, 2, 3)), cube.subarray(Array(1, 1, 1), Array(2, 3, 4)))
    assertEquals(List(26, 28, 30, 36, 38, 40), values(sum))
    val column = cube.slice(2, 0)
    column.subtract(column)
    assertEquals(0f, column.toFlat().sum)
    assertEquals(1f, cube.get(Array(0, 0, 1)))
    val halves = NDArray(Array(1f, 2f, 3f), Array(3))
    halves.scalarDivide(2f)
    assertArrayEquals(Array(0.5f, 1f, 1.5f), halves.toFlat())
    assertEquals("shapes (3) and (3, 4) differ", message(halves.add(column)))
  }

  @Test def overlappingViewsAddWhatWasThere(): Unit = {
    val row = NDArray(Array(1f, 2f, 3f), Array(3))
    row.subarray(Array(1), Array(3)).add(row.subarray(Array(0), Array(2)))
    assertEquals(List(1, 3, 5), values(row))
  }

  @Test def copiesOfAnyView(): Unit = {
    val part = cube.subarray(Array(0, 1, 1), Array(3, 3, 3))
    val (fast, slow) = (new Array[Float](12), new Array[Float](12))
    part.flatCopy(fast)
    part.flatCopySlow(slow)
    assertArrayEquals(slow, fast)
    assertEquals("(3, 2, 2) holds 12 values, not 5", message(part.flatCopy(new Array[Float](5))))
  }

  @Test def whatDoesNotFitIsRefused(): Unit = {
    assertEquals("2 values do not fill shape (3)", message(NDArray(Array(1f, 2f), Array(3))))
    assertTrue(message(NDArray.zeros(Array(1 << 20, 1 << 10))).contains("at most"))
    assertEquals("shape (-2, -3) has the size -2 at axis 0: it must be at least 0",
      message(NDArray(new Array[Float](6), Array(-2, -3))))
  }

  @Test def nearlyEqual(): Unit = {
    val (a, b) = (NDArray(Array(1f, 2f), Array(2)), NDArray(Array(1f, 2.1f), Array(2)))
    assertTrue(NDArray.checkEqual(a, b, 0.2f))
    assertFalse(NDArray.checkEqual(a, b, 0.05f))
    assertFalse(NDArray.checkEqual(a, NDArray(Array(1f, 2f), Array(1, 2)), 1f))
    assertFalse(NDArray.checkEqual(NDArray(Array(Float.NaN), Array(1)), NDArray.zeros(Array(1)), 1f))
  }

  @Test def memoryOfOthersIsNotCopied(): Unit = {
    val memory = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder()).asFloatBuffer
    NDArray.wrap(memory, Array(2, 2)).set(Array(1, 0), 7f)
    assertEquals(7f, memory.get(2))
  }

  @Test def aViewTravelsAsItsValues(): Unit = {
    val bytes = new ByteArrayOutputStream
    val out = new ObjectOutputStream(bytes)
    out.writeObject(cube.slice(0, 1))
    out.close()
    val in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray))
    val back = in.readObject().asInstanceOf[NDArray]
    assertEquals(values(cube.slice(0, 1)), values(back))
    assertEquals(List(4, 5), back.shape.toList)
  }
}
